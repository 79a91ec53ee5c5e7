import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "./api";
import { CopyButton, Icon, message, Notice } from "./ui";

// The API's reference, from the document that the server describes itself with. It is the same for everyone and needs no key.

interface Schema {
  $ref?: string; type?: string | string[]; format?: string; description?: string; enum?: unknown[]; default?: unknown; examples?: unknown[]; properties?: Record<string, Schema>; required?: string[];
  items?: Schema; additionalProperties?: boolean | Schema; oneOf?: Schema[]; minimum?: number; maximum?: number; minLength?: number; maxLength?: number; maxItems?: number; pattern?: string;
}
interface Media { schema?: Schema }
interface Parameter { name: string; in: string; required?: boolean; description?: string; schema?: Schema; example?: unknown }
interface Operation {
  operationId: string; summary?: string; description?: string; tags?: string[]; parameters?: Parameter[]; security?: unknown[];
  requestBody?: { required?: boolean; content: Record<string, Media> }; responses: Record<string, { description?: string; content?: Record<string, Media> }>;
}
interface Document { info: { title: string; version: string; description?: string }; paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } }
interface Entry { method: string; path: string; op: Operation }

const deepest = 6; // schemas can be parts of themselves

class Schemas {
  constructor(private all: Record<string, Schema>) {}

  resolve(s: Schema | undefined): Schema { return (s?.$ref ? this.all[s.$ref.slice(s.$ref.lastIndexOf("/") + 1)] : s) ?? {}; }

  // kind says what a value is, in a few words.
  kind(of: Schema | undefined, depth = 0): string {
    const s = this.resolve(of), types = [s.type ?? []].flat();
    if (depth > deepest) return "…";
    if (s.oneOf) return s.oneOf.map((o) => this.kind(o, depth + 1)).join(" or ");
    const names = types.filter((t) => t !== "null").map((t) => (t === "array" ? `list of ${this.kind(s.items, depth + 1)}` : t === "object" && typeof s.additionalProperties === "object" ? `map of ${this.kind(s.additionalProperties, depth + 1)}` : s.format ? `${t} (${s.format})` : t));
    return names.join(" or ") || "any";
  }

  // bounds says what values are allowed, in a few words.
  bounds(of: Schema | undefined): string {
    const s = this.resolve(of), said: string[] = [];
    if (s.enum) said.push("one of " + s.enum.map((v) => JSON.stringify(v)).join(", "));
    if (s.minimum !== undefined) said.push(`at least ${s.minimum}`);
    if (s.maximum !== undefined) said.push(`at most ${s.maximum}`);
    if (s.minLength) said.push(`at least ${s.minLength} characters`);
    if (s.maxLength !== undefined) said.push(`up to ${s.maxLength} characters`);
    if (s.maxItems !== undefined) said.push(`up to ${s.maxItems} of them`);
    if (s.pattern) said.push(`matches ${s.pattern}`);
    if (s.default !== undefined) said.push(`default ${JSON.stringify(s.default)}`);
    return said.join("; ");
  }

  // inner is the schema whose fields a value has, or those of its parts.
  inner(of: Schema | undefined): Schema | null {
    const s = this.resolve(of);
    if (s.properties) return s;
    if (s.items) return this.inner(s.items);
    if (typeof s.additionalProperties === "object") return this.inner(s.additionalProperties);
    for (const o of s.oneOf ?? []) { const i = this.inner(o); if (i) return i; }
    return null;
  }

  // example is a value that fits: what has to be there, or, where nothing has to, what the document has examples of.
  example(of: Schema | undefined, depth = 0): unknown {
    const s = this.resolve(of), type = [s.type ?? []].flat().find((t) => t !== "null");
    if (s.examples?.length) return s.examples[0];
    if (s.default !== undefined) return s.default;
    if (s.enum?.length) return s.enum[0];
    if (s.oneOf) return this.example(s.oneOf[0], depth + 1);
    if (type === "object" || s.properties) {
      const o: Record<string, unknown> = {};
      if (depth > deepest) return o;
      for (const [name, p] of Object.entries(s.properties ?? {})) {
        if (s.required?.length ? s.required.includes(name) : this.resolve(p).examples?.length) o[name] = this.example(p, depth + 1);
      }
      return o;
    }
    return type === "array" ? [] : type === "integer" || type === "number" ? (s.minimum ?? 0) : type === "boolean" ? false : s.format === "date-time" ? "2026-01-31T12:00:00Z" : "";
  }
}

function Fields({ schemas, of, depth = 0 }: { schemas: Schemas; of: Schema; depth?: number }) {
  return (
    <dl class="fields-list">
      {Object.entries(of.properties ?? {}).map(([name, p]) => {
        const inner = depth < deepest ? schemas.inner(p) : null, bounds = schemas.bounds(p);
        return (
          <div key={name}>
            <dt><code>{name}</code> <span class="muted">{schemas.kind(p)}</span> {of.required?.includes(name) && <span class="badge accent">required</span>}</dt>
            <dd>
              {p.description ?? schemas.resolve(p).description}{bounds && <span class="muted bounds">{bounds}</span>}
              {inner && <Lazy title="Fields"><Fields schemas={schemas} of={inner} depth={depth + 1} /></Lazy>}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

// Lazy is what is made only when somebody opens it.
function Lazy({ title, children }: { title: string; children: preact.ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return <details onToggle={(e) => setOpen(e.currentTarget.open)}><summary>{title}</summary>{open && children}</details>;
}

function curl(schemas: Schemas, { method, path, op }: Entry): string {
  const quote = (s: string) => `'${s.replaceAll("'", "'\\''")}'`;
  let url = path.replace(/\{(\w+)\}/g, (_, name: string) => "$" + name.toUpperCase());
  const query = (op.parameters ?? []).filter((p) => p.in === "query" && p.required).map((p) => `${p.name}=${encodeURIComponent(String(p.example ?? schemas.example(p.schema)))}`);
  if (query.length) url += "?" + query.join("&");
  const parts = [`curl "${location.origin}${url}"`];
  if (method !== "get" && !(method === "post" && op.requestBody)) parts.push(`-X ${method.toUpperCase()}`);
  if (op.security?.length !== 0) parts.push('-H "Authorization: Bearer $LLMSANDBOX_KEY"');
  const body = op.requestBody?.content["application/json"];
  if (body) parts.push(`--json ${quote(JSON.stringify(schemas.example(body.schema), null, 2))}`);
  else if (op.requestBody) parts.push("--data-binary @file");
  return parts.join(" \\\n  ");
}

function OperationView({ entry, schemas }: { entry: Entry; schemas: Schemas }) {
  const { method, path, op } = entry;
  const [open, setOpen] = useState(location.hash === "#" + op.operationId);
  const request = curl(schemas, entry);
  return (
    <details class="operation card" id={op.operationId} open={open} onToggle={(e) => {
      setOpen(e.currentTarget.open);
      if (e.currentTarget.open) history.replaceState(null, "", "#" + op.operationId);
    }}>
      <summary><span class={`badge method ${method}`}>{method.toUpperCase()}</span> <code class="path">{path}</code> <span class="what">{op.summary}</span></summary>
      {open && (
        <div class="operation-body">
          {op.description && <p>{op.description}</p>}
          {(op.parameters?.length ?? 0) > 0 && <section><h3>Parameters</h3>
            <dl class="fields-list">
              {op.parameters!.map((p) => {
                const bounds = schemas.bounds(p.schema);
                return <div key={p.in + p.name}>
                  <dt><code>{p.name}</code> <span class="muted">{schemas.kind(p.schema)}, in the {p.in}</span> {p.required && <span class="badge accent">required</span>}</dt>
                  <dd>{p.description}{bounds && <span class="muted bounds">{bounds}</span>}</dd>
                </div>;
              })}
            </dl></section>}
          {op.requestBody && <section><h3>Body</h3>{Object.entries(op.requestBody.content).map(([type, m]) => <Body key={type} type={type} media={m} schemas={schemas} shown />)}</section>}
          <section><header class="row spread"><h3>Example</h3><CopyButton text={request} /></header><pre class="text snippet" tabIndex={0} aria-label="Example">{request}</pre></section>
          <section><h3>Answers</h3>
            {Object.entries(op.responses).map(([status, r]) => (
              <div key={status} class="answer">
                <p><span class={`badge ${status.startsWith("2") || status === "101" ? "good" : "bad"}`}>{status === "default" ? "any other" : status}</span> {r.description}</p>
                {Object.entries(r.content ?? {}).map(([type, m]) => <Body key={type} type={type} media={m} schemas={schemas} />)}
              </div>
            ))}
          </section>
        </div>
      )}
    </details>
  );
}

function Body({ type, media, schemas, shown }: { type: string; media: Media; schemas: Schemas; shown?: boolean }) {
  const inner = schemas.inner(media.schema), fields = inner && <Fields schemas={schemas} of={inner} />;
  return <div class="body"><p class="note"><code>{type}</code> {!inner && schemas.kind(media.schema)}</p>{fields && (shown ? fields : <Lazy title="Fields">{fields}</Lazy>)}</div>;
}

export function Reference({ alone }: { alone?: boolean }) {
  const [doc, setDoc] = useState<Document | null>(null);
  const [error, setError] = useState("");
  const [filter, setFilter] = useState("");
  useEffect(() => { get<Document>("/openapi.json").then(setDoc, (e: unknown) => setError(message(e))); }, []);
  useEffect(() => { if (doc && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView(); }, [doc]);
  const [schemas, groups] = useMemo(() => {
    const groups = new Map<string, Entry[]>();
    for (const [path, methods] of Object.entries(doc?.paths ?? {})) {
      for (const [method, op] of Object.entries(methods)) {
        const tag = op.tags?.[0] ?? "Others";
        groups.set(tag, [...(groups.get(tag) ?? []), { method, path, op }]);
      }
    }
    return [new Schemas(doc?.components.schemas ?? {}), [...groups]];
  }, [doc]);
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (e: Entry) => { const text = `${e.method} ${e.path} ${e.op.operationId} ${e.op.summary ?? ""}`.toLowerCase(); return wanted.every((w) => text.includes(w)); };
  const shown = groups.map(([tag, entries]) => [tag, entries.filter(fits)] as const).filter(([, entries]) => entries.length > 0);
  return (
    <main class="page reference">
      <header class="row spread wrap">
        <h1>API {doc && <span class="muted count">{doc.info.version}</span>}</h1>
        <div class="row">{alone && <a class="button" href="/">Log in</a>}<a class="button" href="/openapi.json" download="openapi.json"><Icon name="down" /> OpenAPI</a></div>
      </header>
      {error && <Notice>{error}</Notice>}
      {!doc && !error && <span class="spinner" />}
      {doc && <>
        <p class="muted">Send a key with each request: <code>Authorization: Bearer KEY</code>. What went wrong is a JSON object with <code>status</code>, <code>code</code> and <code>detail</code>.</p>
        <input type="search" aria-label="Find an operation" placeholder="Find an operation" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        {shown.map(([tag, entries]) => <section key={tag} class="tag" aria-label={tag}><h2>{tag}</h2>{entries.map((e) => <OperationView key={e.op.operationId} entry={e} schemas={schemas} />)}</section>)}
        {shown.length === 0 && <div class="empty"><p>No operation has that in its path or summary.</p></div>}
      </>}
    </main>
  );
}
