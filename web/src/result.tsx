import { useMemo, useState } from "preact/hooks";
import type { Artifact, Axes, Result } from "./api";
import { visible } from "./ansi";
import { bytes, download, duration, Icon } from "./ui";

const titles: Record<string, string> = {
  ok: "ok", error: "error", timeout: "timeout", out_of_memory: "out of memory", output_limit: "output limit", killed: "killed", refused: "refused", setup_failed: "setup failed", lost: "lost",
};
const hints: Record<string, (s?: string) => string> = {
  library: (s) => `A library may be missing: ${s}`, file: (s) => `A file is missing: ${s}`, network: (s) => (s ? `The sandbox may not reach ${s}` : "The sandbox has no network"),
  timeout: () => "The program needs a longer time limit", memory: () => "The program needs a higher memory limit", output: () => "The program writes more than the limit of output",
};

// StatusLine says what became of a program, as the server observed it.
export function StatusLine({ result }: { result: Result }) {
  const facts: [string, string][] = [];
  if (result.exit_code !== undefined) facts.push(["exit code", String(result.exit_code)]);
  if (result.signal) facts.push(["signal", visible(result.signal)]);
  if (result.duration_ms) facts.push(["time", duration(result.duration_ms)]);
  if (result.cpu_ms) facts.push(["CPU", duration(result.cpu_ms)]);
  if (result.peak_memory_bytes) facts.push(["memory", bytes(result.peak_memory_bytes)]);
  return (
    <div class="status-line" role="status">
      <span class={`badge ${result.status === "ok" ? "good" : result.status === "lost" ? "warn" : "bad"}`}>{titles[result.status] ?? "unknown"}</span>
      {facts.map(([name, value]) => <span key={name} class="fact"><span class="muted">{name}</span> {value}</span>)}
    </div>
  );
}

// Details are what else there is to say of a result.
export function Details({ result }: { result: Result }) {
  const said: string[] = [];
  if (result.reason) said.push(result.reason);
  if (result.stdout_truncated || result.stderr_truncated) said.push("The output was longer than its limit: its rest is not kept");
  if (result.state_lost) said.push("What cells have defined is gone");
  if (result.restarted) said.push("The kernel had ended, and was started again for this cell");
  for (const h of result.hints ?? []) said.push(hints[h.kind]?.(h.subject) ?? h.kind);
  for (const f of result.findings ?? []) said.push(`Policy: ${f.reason} (${f.severity}${f.line ? `, line ${f.line}` : ""})`);
  if (result.artifacts_dropped?.length) said.push(`Not kept, for their size or number: ${result.artifacts_dropped.join(", ")}`);
  return (
    <>
      {said.length > 0 && <ul class="said">{said.map((s, i) => <li key={i}>{visible(s)}</li>)}</ul>}
      {result.network && result.network.length > 0 && (
        <details>
          <summary>{result.network.length} network attempts</summary>
          <Table rows={[["host", "port", "", "why", "sent", "received"], ...result.network.map((a) => [a.name || a.address || "", a.port, a.allowed ? "allowed" : "refused", a.reason ?? a.refused ?? "", bytes(a.sent_bytes), bytes(a.received_bytes)])]} />
        </details>
      )}
      {result.artifacts.length > 0 && <div class="artifacts">{result.artifacts.map((a, i) => <ArtifactView key={i} artifact={a} />)}</div>}
    </>
  );
}

const shownRows = 100;

function cell(v: unknown): string {
  if (v === null || v === undefined) return "";
  return visible(typeof v === "object" ? JSON.stringify(v) : String(v)).slice(0, 500);
}

// Table shows rows, of which the first has the names of the columns.
export function Table({ rows }: { rows: unknown[][] }) {
  const [head, ...all] = rows;
  const body = all.slice(0, shownRows);
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{(head ?? []).slice(0, 50).map((h, i) => <th key={i} scope="col">{cell(h)}</th>)}</tr></thead>
        <tbody>{body.map((r, i) => <tr key={i}>{r.slice(0, 50).map((v, j) => <td key={j} class={typeof v === "number" ? "number" : ""}>{cell(v)}</td>)}</tr>)}</tbody>
      </table>
      {all.length > body.length && <p class="note">{all.length - body.length} more rows</p>}
    </div>
  );
}

// csv reads a table of at most so many rows.
function csv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], field = "", quoted = false;
  for (let i = 0; i < text.length && rows.length <= 10_000; i++) {
    const c = text[i]!;
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { field += c; i++; } else if (c === '"') quoted = false; else field += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { row.push(field); field = ""; }
    else if (c === "\n") { row.push(field.replace(/\r$/, "")); rows.push(row); row = []; field = ""; }
    else field += c;
  }
  if (field || row.length) { row.push(field); rows.push(row); }
  return rows;
}

// table is the content of one in the forms that libraries give: split JSON, records, or CSV.
export function tableOf(a: Artifact): unknown[][] | null {
  for (const f of [a, ...(a.also ?? [])]) {
    try {
      if (f.mime === "text/csv") return csv(textOf(f.data));
      if (f.mime === "application/json") {
        const v = JSON.parse(textOf(f.data)) as unknown;
        if (Array.isArray(v) && v.length && v.every((r) => r && typeof r === "object" && !Array.isArray(r))) {
          const names = Object.keys(v[0] as object);
          return [names, ...(v as Record<string, unknown>[]).map((r) => names.map((n) => r[n]))];
        }
        const split = v as { columns?: unknown[]; data?: unknown[][] };
        if (Array.isArray(split?.columns) && Array.isArray(split.data) && split.data.every(Array.isArray)) return [split.columns, ...split.data];
      }
    } catch { /* it is not what it says to be: it is shown as text */ }
  }
  return null;
}

function binary(base64: string): Uint8Array<ArrayBuffer> { return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)); }
export const textOf = (base64: string) => new TextDecoder().decode(binary(base64));

const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"]); // no script of an SVG runs in an <img>
const textShown = 20_000;

export function ArtifactView({ artifact: a }: { artifact: Artifact }) {
  const [data, setData] = useState(false);
  const picture = pictures.has(a.mime) ? a : a.also?.find((f) => pictures.has(f.mime));
  const rows = useMemo(() => tableOf(a), [a]);
  const text = !picture && !rows && (a.mime.startsWith("text/") || a.mime.includes("json")) ? visible(textOf(a.data)) : null;
  const name = visible(a.title || a.name);
  return (
    <figure class="artifact">
      <figcaption class="row spread">
        <span class="name" title={visible(a.name)}>{name}</span>
        <span class="row">
          {a.chart && <button class="ghost" aria-pressed={data} onClick={() => setData(!data)}>Data</button>}
          <button class="ghost icon-only" aria-label={`Save ${name}`} onClick={() => download(a.name, new Blob([binary(a.data)], { type: "application/octet-stream" }))}><Icon name="down" /></button>
        </span>
      </figcaption>
      {data && a.chart ? a.chart.axes.map((x, i) => <ChartData key={i} axes={x} />)
        : picture ? <img class="picture" src={`data:${picture.mime};base64,${picture.data}`} alt={describe(a)} />
        : rows ? <Table rows={rows} />
        : text !== null ? <pre class="text" tabIndex={0} dir="ltr">{text.slice(0, textShown)}{text.length > textShown ? "\n…" : ""}</pre>
        : <p class="note">{a.mime}, {bytes(Math.floor(a.data.length * 0.75))}</p>}
    </figure>
  );
}

// describe is what a picture shows, for who does not see it.
function describe(a: Artifact): string {
  const shown = (a.chart?.axes ?? []).map((x) => `${x.title ? x.title + ": " : ""}${x.series.slice(0, 5).map((s) => `${s.type}${s.label ? " " + s.label : ""}`).join(", ")}`);
  return visible([a.title || a.name, ...shown].join("; ")).slice(0, 300);
}

function ChartData({ axes }: { axes: Axes }) {
  return (
    <>
      {axes.series.slice(0, 20).map((s, i) => {
        const columns = [["x", axes.x.label, s.x], ["y", axes.y.label, s.y], ["z", "", s.z]].filter((c) => Array.isArray(c[2])) as [string, string | undefined, unknown[]][];
        const length = Math.min(10_000, Math.max(0, ...columns.map((c) => c[2].length)));
        return (
          <div key={i}>
            <p class="note">{visible(`${s.type}${s.label ? ` · ${s.label}` : ""}`)}</p>
            <Table rows={[columns.map((c) => c[1] || c[0]), ...Array.from({ length }, (_, at) => columns.map((c) => c[2][at]))]} />
          </div>
        );
      })}
    </>
  );
}
