import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { Failure, get, post, request, run, type Result, type Sandbox, type Who } from "./api";
import { Files } from "./files";
import { Output, OutputView } from "./output";
import { LanguageSelect, useLanguages } from "./playground";
import { Details, StatusLine } from "./result";
import { bytes, Confirm, Dialog, duration, Icon, Link, message, Notice, Tabs } from "./ui";

const every = 5000; // milliseconds between looks at the server

// useLive calls look now and then, while the page can be seen.
export function useLive(look: () => Promise<unknown>, deps: unknown[]) {
  useEffect(() => {
    let timer = 0, gone = false;
    const tick = async () => {
      if (!document.hidden) await look();
      if (!gone) timer = window.setTimeout(tick, every);
    };
    void tick();
    return () => { gone = true; clearTimeout(timer); };
  }, deps);
}

const until = (date: string): string => { const ms = new Date(date).getTime() - Date.now(); return ms > 0 ? `ends in ${duration(ms)}` : "has ended"; };

function Labels({ of }: { of: Record<string, string> | undefined }) {
  return <>{Object.entries(of ?? {}).slice(0, 12).map(([k, v]) => <span key={k} class="badge label">{visible(`${k}: ${v}`).slice(0, 80)}</span>)}</>;
}

export function Sandboxes({ who, go }: { who: Who; go(to: string): void }) {
  const [list, setList] = useState<Sandbox[] | null>(null);
  const [more, setMore] = useState(false);
  const [error, setError] = useState("");
  const [making, setMaking] = useState(false);
  useLive(() => get<{ sandboxes: Sandbox[]; next?: string }>("/v1/sandboxes?limit=200").then((l) => { setList(l.sandboxes.reverse()); setMore(!!l.next); setError(""); }, (e) => setError(message(e))), []);
  return (
    <main class="page">
      <header class="row spread wrap">
        <h1>Sandboxes {list && list.length > 0 && <span class="muted count">{list.length}{more ? "+" : ""}</span>}</h1>
        <button class="primary" disabled={!who.write} onClick={() => setMaking(true)}><Icon name="plus" /> New sandbox</button>
      </header>
      {error && <Notice>{error}</Notice>}
      {list && list.length === 0 && (
        <div class="card empty"><Icon name="box" /><p>There are no sandboxes.</p><p class="muted">A sandbox keeps its files between runs, until its lifetime is over. Programs of your project's keys make them, and you do here.</p></div>
      )}
      <ul class="cards">
        {(list ?? []).map((s) => (
          <li key={s.id}>
            <Link class="card sandbox" to={`/sandboxes/${s.id}`} go={go}>
              <span class="row spread"><span class="badge accent">{s.language || "any"}</span><span class="note">{s.deadline && until(s.deadline)}</span></span>
              <code class="id">{s.id}</code>
              <span class="row wrap"><Labels of={s.labels} /></span>
              <span class="note">made {new Date(s.created).toLocaleString()}</span>
            </Link>
          </li>
        ))}
      </ul>
      {making && <NewSandbox onClose={() => setMaking(false)} onMade={(s) => go(`/sandboxes/${s.id}`)} />}
    </main>
  );
}

function NewSandbox({ onClose, onMade }: { onClose(): void; onMade(s: Sandbox): void }) {
  const languages = useLanguages();
  const [language, setLanguage] = useState("python");
  const [minutes, setMinutes] = useState("60");
  const [label, setLabel] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const make = async (e: Event) => {
    e.preventDefault();
    setBusy(true); setError("");
    try {
      onMade(await post<Sandbox>("/v1/sandboxes", { language, lifetime_seconds: Number(minutes) * 60, ...(label ? { labels: { name: label } } : {}) }));
    } catch (err) { setError(message(err)); setBusy(false); }
  };
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form class="fields" onSubmit={make}>
        {error && <Notice>{error}</Notice>}
        <div class="field"><LanguageSelect id="new-language" visible value={language} onChange={setLanguage} languages={languages} /></div>
        <div class="field"><label for="minutes">Lifetime in minutes</label><input id="minutes" type="number" min="1" required value={minutes} onInput={(e) => setMinutes(e.currentTarget.value)} /></div>
        <div class="field"><label for="name">Name</label><input id="name" maxLength={60} value={label} placeholder="Optional" onInput={(e) => setLabel(e.currentTarget.value)} /></div>
        <div class="row end"><button class="primary" disabled={busy}>{busy ? <span class="spinner" /> : <Icon name="plus" />} Create</button></div>
      </form>
    </Dialog>
  );
}

const tabs = ["Files", "Terminal"];

interface Usage { cpu_ms?: number; memory_bytes?: number; peak_memory_bytes?: number }

export function SandboxPage({ id, who, go }: { id: string; who: Who; go(to: string): void }) {
  const path = `/v1/sandboxes/${encodeURIComponent(id)}`;
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  const [usage, setUsage] = useState<Usage>({});
  const [network, setNetwork] = useState<{ mode?: string; allow?: string[] }>({});
  const [error, setError] = useState("");
  const [gone, setGone] = useState(false);
  const [removing, setRemoving] = useState(false);
  useLive(async () => {
    try {
      const [s, u, n] = await Promise.all([get<Sandbox>(path), get<Usage>(path + "/usage"), get<{ mode?: string; allow?: string[] }>(path + "/network")]);
      setSandbox(s); setUsage(u); setNetwork(n); setError("");
    } catch (e) {
      if (e instanceof Failure && e.status === 404) { setGone(true); setSandbox(null); } else setError(message(e));
    }
  }, [id]);
  const [tab, setTab] = useState(() => tabs.find((t) => "#" + t.toLowerCase() === location.hash) ?? "Files");
  const choose = (name: string) => { setTab(name); history.replaceState(null, "", "#" + name.toLowerCase()); };
  const [Terminal, setTerminal] = useState<typeof import("./terminal").Terminal | null>(null); // large, and loaded once it is wanted
  useEffect(() => { if (tab === "Terminal" && !Terminal) import("./terminal").then((m) => setTerminal(() => m.Terminal), (e: unknown) => setError(message(e))); }, [tab]);
  const remove = async () => { try { await request("DELETE", path); go("/sandboxes"); } catch (e) { setError(message(e)); } };
  return (
    <main class="page">
      <header class="row spread wrap">
        <div class="title">
          <Link class="back" to="/sandboxes" go={go}>Sandboxes</Link>
          <h1 class="id"><code>{id}</code></h1>
        </div>
        {sandbox && <button class="danger" disabled={!who.write} onClick={() => setRemoving(true)}><Icon name="trash" /> Remove</button>}
      </header>
      {gone && <Notice kind="info">There is no sandbox of your project with this id. It may have ended.</Notice>}
      {error && <Notice>{error}</Notice>}
      {sandbox && (
        <>
          <div class="row wrap"><span class="badge accent">{sandbox.language || "any language"}</span><Labels of={sandbox.labels} /></div>
          <dl class="tiles">
            <Tile name="Memory" value={usage.memory_bytes !== undefined ? bytes(usage.memory_bytes) : "not known"} more={sandbox.limits.memory_bytes ? `of ${bytes(sandbox.limits.memory_bytes)}` : ""} part={usage.memory_bytes && sandbox.limits.memory_bytes ? usage.memory_bytes / sandbox.limits.memory_bytes : undefined} />
            <Tile name="Peak" value={usage.peak_memory_bytes !== undefined ? bytes(usage.peak_memory_bytes) : "not known"} />
            <Tile name="CPU time" value={usage.cpu_ms !== undefined ? duration(usage.cpu_ms) : "not known"} more={sandbox.limits.cpus ? `at most ${sandbox.limits.cpus} CPU` : ""} />
            <Tile name="Network" value={network.mode || "none"} more={visible((network.allow ?? []).join(", ")).slice(0, 120)} />
            <Tile name="Lifetime" value={sandbox.deadline ? until(sandbox.deadline) : "no end"} />
          </dl>
          <div><Tabs label="Of the sandbox" names={tabs} value={tab} onChange={choose} /></div>
          <div class="columns" hidden={tab !== "Files"}>
            <Files sandbox={path} who={who} />
            <Shell path={path} who={who} />
          </div>
          {Terminal && <Terminal id={id} path={path} who={who} shown={tab === "Terminal"} />}
        </>
      )}
      {removing && <Confirm title="Remove the sandbox?" text="All that runs in it ends, and its files are gone." action="Remove it" onYes={remove} onClose={() => setRemoving(false)} />}
    </main>
  );
}

export function Tile({ name, value, more, part }: { name: string; value: string; more?: string; part?: number | undefined }) {
  return (
    <div class="card tile">
      <dt class="note">{name}</dt>
      <dd>{value} {more && <span class="note">{more}</span>}{part !== undefined && <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="4" /><rect class="used" width={Math.min(100, part * 100)} height="4" /></svg>}</dd>
    </div>
  );
}

// Shell runs one line at a time.
function Shell({ path, who }: { path: string; who: Who }) {
  const [line, setLine] = useState("");
  const [output, setOutput] = useState<Output | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState("");
  const [running, setRunning] = useState<AbortController | null>(null);
  const now = useRef(running);
  now.current = running;
  useEffect(() => () => now.current?.abort(), []);
  const start = async (e: Event) => {
    e.preventDefault();
    if (now.current || !line.trim()) return;
    const abort = new AbortController(), out = new Output();
    now.current = abort;
    setRunning(abort); setOutput(out); setResult(null); setError("");
    try {
      setResult(await run(path + "/exec", { shell: line }, (s, t) => out.push(s, t), abort.signal));
    } catch (err) { setError((err as Error).name === "AbortError" ? "Stopped." : message(err)); }
    setRunning(null);
  };
  return (
    <section class="card pane" aria-label="Shell">
      <form class="toolbar row" onSubmit={start}>
        <label class="sr-only" for="line">A line for the sandbox's shell</label>
        <input id="line" class="mono" autocomplete="off" spellcheck={false} placeholder="ls -l" value={line} onInput={(e) => setLine(e.currentTarget.value)} disabled={!who.write} />
        {running ? <button type="button" class="danger" onClick={() => running.abort()}><Icon name="stop" /> Stop</button> : <button class="primary" disabled={!who.write}><Icon name="play" /> Run</button>}
      </form>
      <div class="results">
        {result && <StatusLine result={result} />}
        {error && <Notice>{error}</Notice>}
        {output ? <OutputView output={output} label="Output of the line" /> : <div class="empty"><Icon name="terminal" /><p class="muted">Run a line of the sandbox's shell.</p></div>}
        {result && <Details result={result} />}
      </div>
    </section>
  );
}
