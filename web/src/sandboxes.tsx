import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { events, Failure, get, post, request, run, type Result, type Sandbox, type Who } from "./api";
import { add, Chart, type Point } from "./chart";
import { Files } from "./files";
import { Output, OutputView } from "./output";
import { LanguageSelect, useLanguages } from "./playground";
import { Ports } from "./ports";
import { prefs, time } from "./prefs";
import { Details, StatusLine } from "./result";
import { bytes, Confirm, Dialog, duration, Empty, Icon, Link, message, Notice, Tabs, Tile, useLive } from "./ui";

// useSandboxes are the project's sandboxes as they change, the oldest first, while the page can be seen; null where they are not known yet.
function useSandboxes(): { list: Sandbox[] | null; error: string } {
  const [list, setList] = useState<Sandbox[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let watch: AbortController | undefined, timer = 0;
    const follow = async () => {
      const mine = watch = new AbortController();
      let again = 1000; // milliseconds
      try {
        for await (const { name, data } of events(await request("GET", "/v1/sandboxes/watch", { signal: mine.signal }))) {
          const news = JSON.parse(data) as { sandboxes: Sandbox[]; op: string; sandbox: Sandbox };
          setError("");
          if (name === "sandboxes") setList(news.sandboxes);
          else if (news.op === "create") setList((l) => [...l!, news.sandbox]);
          else setList((l) => l!.flatMap((s) => (s.id !== news.sandbox.id ? [s] : news.op === "change" ? [news.sandbox] : [])));
        }
      } catch (e) {
        if (mine.signal.aborted) return;
        setError(message(e));
        again = 5000;
      }
      if (!mine.signal.aborted) timer = window.setTimeout(follow, again);
    };
    const leave = () => { watch?.abort(); clearTimeout(timer); };
    const see = () => { leave(); if (!document.hidden) void follow(); }; // a browser has few connections to a server
    document.addEventListener("visibilitychange", see);
    see();
    return () => { document.removeEventListener("visibilitychange", see); leave(); };
  }, []);
  return { list, error };
}

// Until tells how long it is until a time.
function Until({ date }: { date: string | undefined }) {
  const [, redraw] = useState(0);
  useEffect(() => { const timer = setInterval(() => redraw((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
  if (!date) return <>no end</>;
  const ms = new Date(date).getTime() - Date.now();
  return <span title={time(date)}>{ms > 0 ? `ends in ${duration(ms)}` : "has ended"}</span>;
}

function Labels({ of }: { of: Record<string, string> | undefined }) {
  return <>{Object.entries(of ?? {}).slice(0, 12).map(([k, v]) => <span key={k} class="badge label">{visible(`${k}: ${v}`).slice(0, 80)}</span>)}</>;
}

export function Sandboxes({ who, go }: { who: Who; go(to: string): void }) {
  const { list, error } = useSandboxes();
  const [making, setMaking] = useState(false);
  return (
    <main class="page">
      <header class="row spread wrap">
        <h1>Sandboxes {list && list.length > 0 && <span class="muted count">{list.length}</span>}</h1>
        <button class="primary" disabled={!who.write} onClick={() => setMaking(true)}><Icon name="plus" /> New sandbox</button>
      </header>
      {error && <Notice>{error}</Notice>}
      {list?.length === 0 && <Empty icon="box" title="There are no sandboxes.">A sandbox keeps its files between runs, until its lifetime is over. Programs of your project's keys make them, and you do here.</Empty>}
      <ul class="cards">
        {(list ?? []).slice(-200).reverse().map((s) => (
          <li key={s.id}>
            <Link class="card sandbox" to={`/sandboxes/${s.id}`} go={go}>
              <span class="row spread"><span class="badge accent">{s.language || "any"}</span><span class="note">{s.paused ? "paused" : <Until date={s.deadline} />}</span></span>
              <code class="id">{s.id}</code>
              {Object.keys(s.labels ?? {}).length > 0 && <span class="row wrap"><Labels of={s.labels} /></span>}
              <span class="note">{[`made ${time(s.created)}`, s.limits.memory_bytes && bytes(s.limits.memory_bytes)].filter(Boolean).join(" · ")}</span>
            </Link>
          </li>
        ))}
      </ul>
      {(list?.length ?? 0) > 200 && <p class="note">The 200 that were made last are shown.</p>}
      {making && <NewSandbox onClose={() => setMaking(false)} onMade={(s) => go(`/sandboxes/${s.id}`)} />}
    </main>
  );
}

function NewSandbox({ onClose, onMade }: { onClose(): void; onMade(s: Sandbox): void }) {
  const languages = useLanguages();
  const [language, setLanguage] = useState(() => prefs().language);
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

const tabs = ["Files", "Terminal", "Ports"];

interface Usage { cpu_ms?: number; memory_bytes?: number; peak_memory_bytes?: number }
interface Network { mode?: string; allow?: string[] }

export function SandboxPage({ id, who, go }: { id: string; who: Who; go(to: string): void }) {
  const path = `/v1/sandboxes/${encodeURIComponent(id)}`;
  const { list, error: lost } = useSandboxes();
  const sandbox = list?.find((s) => s.id === id);
  const gone = list && !sandbox;
  const [usage, setUsage] = useState<Usage | null>(null);
  const [memory, setMemory] = useState<Point[]>([]);
  const [cpu, setCPU] = useState<Point[]>([]);
  const last = useRef<{ at: number; ms: number } | null>(null); // what the CPU was used for until then
  const [network, setNetwork] = useState<Network>({});
  const [error, setError] = useState("");
  const [removing, setRemoving] = useState(false);
  const here = !!sandbox, paused = !!sandbox?.paused;
  useLive(async () => {
    if (!here) return;
    try {
      const [u, n] = await Promise.all([get<Usage>(path + "/usage"), paused ? null : get<Network>(path + "/network")]);
      const at = Date.now(), { memory_bytes: used, cpu_ms: ms } = u;
      setUsage(u); setError("");
      if (n) setNetwork(n);
      if (used !== undefined) setMemory((all) => add(all, { at, value: used }));
      if (ms === undefined) return;
      const { at: before, ms: had } = last.current ?? { at, ms };
      if (at > before) setCPU((all) => add(all, { at, value: (Math.max(0, ms - had) / (at - before)) * 100 }));
      last.current = { at, ms };
    } catch (e) { if (!(e instanceof Failure && e.status === 404)) setError(message(e)); } // the list tells that it has ended
  }, [id, here, paused], 2000);
  const [tab, setTab] = useState(() => tabs.find((t) => "#" + t.toLowerCase() === location.hash) ?? "Files");
  const choose = (name: string) => { setTab(name); history.replaceState(null, "", "#" + name.toLowerCase()); };
  const [Terminal, setTerminal] = useState<typeof import("./terminal").Terminal | null>(null); // large, and loaded once it is wanted
  useEffect(() => { if (tab === "Terminal" && !Terminal) import("./terminal").then((m) => setTerminal(() => m.Terminal), (e: unknown) => setError(message(e))); }, [tab]);
  const pause = async () => { try { await request("POST", path + (paused ? "/resume" : "/pause")); setError(""); } catch (e) { setError(message(e)); } };
  const remove = async () => { try { await request("DELETE", path); go("/sandboxes"); } catch (e) { setError(message(e)); } };
  return (
    <main class="page">
      <header class="row spread wrap">
        <div class="title">
          <Link class="back" to="/sandboxes" go={go}>Sandboxes</Link>
          <h1 class="id"><code>{id}</code></h1>
        </div>
        {sandbox && (
          <span class="row">
            <button disabled={!who.write} onClick={pause}>{paused ? "Resume" : "Pause"}</button>
            <button class="danger" disabled={!who.write} onClick={() => setRemoving(true)}><Icon name="trash" /> Remove</button>
          </span>
        )}
      </header>
      {gone && <Notice kind="info">There is no sandbox of your project with this id. It may have ended.</Notice>}
      {paused && <Notice kind="info">The sandbox is paused: what runs in it stands still, and so does its lifetime.</Notice>}
      {(lost || error) && <Notice>{lost || error}</Notice>}
      {sandbox && (
        <>
          <div class="row wrap"><span class="badge accent">{sandbox.language || "any language"}</span><Labels of={sandbox.labels} /><span class="note">made {time(sandbox.created)}</span></div>
          <dl class="tiles">
            <Chart name="Memory" points={memory} none={usage ? undefined : "…"} format={bytes} binary more={[sandbox.limits.memory_bytes && `of ${bytes(sandbox.limits.memory_bytes)}`, usage?.peak_memory_bytes && `peak ${bytes(usage.peak_memory_bytes)}`].filter(Boolean).join(" · ")} />
            <Chart name="CPU" points={cpu} none={usage && usage.cpu_ms === undefined ? undefined : "…"} format={(n) => `${n < 10 ? Number(n.toFixed(1)) : Math.round(n)} %`} more={[sandbox.limits.cpus && `of ${sandbox.limits.cpus * 100} %`, usage?.cpu_ms !== undefined && `${duration(usage.cpu_ms)} in all`].filter(Boolean).join(" · ")} />
            <Tile name="Network" value={network.mode || "none"} more={visible((network.allow ?? []).join(", ")).slice(0, 120)} />
            <Tile name="Lifetime" value={paused ? "paused" : <Until date={sandbox.deadline} />} />
          </dl>
          <div><Tabs label="Of the sandbox" names={tabs} value={tab} onChange={choose} /></div>
          <div class="columns" hidden={tab !== "Files"}>
            <Files sandbox={path} who={who} />
            <Shell path={path} who={who} />
          </div>
          {tab === "Ports" && <Ports path={path} who={who} />}
          {Terminal && <Terminal id={id} path={path} who={who} shown={tab === "Terminal"} />}
        </>
      )}
      {removing && <Confirm title="Remove the sandbox?" text="All that runs in it ends, and its files are gone." action="Remove it" onYes={remove} onClose={() => setRemoving(false)} />}
    </main>
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
