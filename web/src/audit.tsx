import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { type AuditEntry, get, type Who } from "./api";
import { time } from "./prefs";
import { Empty, Icon, Link, message, Notice } from "./ui";

interface Search { since: string; until: string; key: string; sandbox: string; operation: string; outcome: string }

const empty: Search = { since: "", until: "", key: "", sandbox: "", operation: "", outcome: "" };
let kept = empty; // what was looked for, while the page is another one

export function forget() { kept = empty; }

const fields: { name: keyof Search; label: string; type: "text" | "datetime-local"; placeholder?: string; most?: number }[] = [
  { name: "operation", label: "Operation", type: "text", placeholder: "create-sandbox", most: 64 }, { name: "outcome", label: "Outcome", type: "text", placeholder: "ok", most: 64 },
  { name: "key", label: "Key", type: "text", placeholder: "Name or id", most: 64 }, { name: "sandbox", label: "Sandbox", type: "text", placeholder: "sb-…", most: 40 },
  { name: "since", label: "From", type: "datetime-local" }, { name: "until", label: "Until", type: "datetime-local" },
];

function query(s: Search, after: string): string {
  const q = new URLSearchParams({ limit: "100" });
  for (const { name, type } of fields) if (s[name]) q.set(name, type === "text" ? s[name].trim() : new Date(s[name]).toISOString());
  if (after) q.set("after", after);
  return `/v1/audit?${q}`;
}

// Audit shows who did what with the project's sandboxes. Some of it is text that clients or code have chosen.
export function Audit({ who, go }: { who: Who; go(to: string): void }) {
  const [search, setSearch] = useState(kept);
  const [entries, setEntries] = useState<AuditEntry[] | null>(null);
  const [next, setNext] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const asked = useRef(0);
  kept = search;
  const load = async (s: Search, after: string) => {
    const mine = ++asked.current;
    setBusy(true); setError("");
    try {
      const page = await get<{ entries: AuditEntry[]; next?: string }>(query(s, after));
      if (mine !== asked.current) return; // something else is looked for by now
      setEntries((e) => [...(after ? e ?? [] : []), ...page.entries]);
      setNext(page.next ?? "");
    } catch (e) { if (mine === asked.current) setError(message(e)); }
    if (mine === asked.current) setBusy(false);
  };
  useEffect(() => { if (who.audit) void load(search, ""); }, []);
  const only = (to: Partial<Search>) => { const s = { ...search, ...to }; setSearch(s); void load(s, ""); };
  if (!who.audit) return <main class="page"><h1>Audit</h1><Notice kind="info">Your key may not read the audit log: that needs the scope audit.</Notice></main>;
  return (
    <main class="page">
      <header class="row spread wrap">
        <h1>Audit</h1>
        <button onClick={() => load(search, "")} disabled={busy}><Icon name="refresh" /> Refresh</button>
      </header>
      <form class="card search" role="search" aria-label="Audit log" onSubmit={(e) => { e.preventDefault(); void load(search, ""); }}>
        {fields.map(({ name, label, type, placeholder, most }) => (
          <div class="field" key={name}>
            <label for={`audit-${name}`}>{label}</label>
            {type === "text"
              ? <input id={`audit-${name}`} placeholder={placeholder} maxLength={most} autocomplete="off" spellcheck={false} value={search[name]} onInput={(e) => setSearch({ ...search, [name]: e.currentTarget.value })} />
              : <input id={`audit-${name}`} type={type} value={search[name]} onInput={(e) => setSearch({ ...search, [name]: e.currentTarget.value })} />}
          </div>
        ))}
        <div class="row end">
          <button type="button" class="ghost" onClick={() => only(empty)}>Clear</button>
          <button class="primary" disabled={busy}><Icon name="search" /> Search</button>
        </div>
      </form>
      {error && <Notice>{error}</Notice>}
      {entries && entries.length === 0 && <Empty icon="log" title="Nothing is found.">The log has who made, used or removed which sandbox, and what programs tried to reach.</Empty>}
      {entries && entries.length > 0 && (
        <section class="card table-card" aria-label="Entries">
          <table class="stacked">
            <thead><tr>{["Time", "Operation", "Outcome", "Key", "Sandbox", "Detail"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
            <tbody>
              {entries.map((e, i) => (
                <tr key={i}>
                  <td class="time"><time dateTime={e.time}>{time(e.time)}</time></td>
                  <td><button class="link" title="Only this operation" onClick={() => only({ operation: e.operation })}>{visible(e.operation)}</button></td>
                  <td><span class={`badge ${e.outcome === "ok" ? "good" : "bad"}`}>{visible(e.outcome)}</span></td>
                  <td>{visible(e.key_name ?? "")}</td>
                  <td>{e.sandbox && <Link to={`/sandboxes/${encodeURIComponent(e.sandbox)}`} go={go}><code>{visible(e.sandbox)}</code></Link>}</td>
                  <td class="detail">{visible(e.detail ?? "")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      <p class="sr-only" role="status">{busy ? "Loading" : entries ? `${entries.length} entries${next ? ", and more" : ""}` : ""}</p>
      {next && <div class="row center"><button disabled={busy} onClick={() => load(search, next)}>{busy ? <span class="spinner" /> : <Icon name="down" />} Older</button></div>}
    </main>
  );
}
