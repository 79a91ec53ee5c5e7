import { useEffect, useRef, useState } from "preact/hooks";
import { Parser, visible } from "./ansi";
import { Failure, type Kernel, post, request, run, type Result, type Sandbox, type Who } from "./api";
import { Editor } from "./editor";
import { Output, OutputView } from "./output";
import { LanguageSelect, useLanguages } from "./playground";
import { prefs } from "./prefs";
import { Details, StatusLine } from "./result";
import { Confirm, Icon, Link, message, Notice } from "./ui";

interface Cell { id: number; code: string; output: Output | null; result: Result | null; error: string }
interface Open { sandbox: string; kernel: Kernel }

// What of the notebook outlives a change of the page; its kernel and code outlive a reload, too, in this tab.
interface Kept { open: Open | null; language: string; cells: Cell[] }
const key = "notebook";
let next = 1;
const cell = (code = ""): Cell => ({ id: next++, code, output: null, result: null, error: "" });
let kept: Kept = read();

function read(): Kept {
  try {
    const saved = JSON.parse(sessionStorage.getItem(key) ?? "null") as { open: Open; language: string; codes: string[] } | null;
    if (saved?.open) return { open: saved.open, language: saved.language, cells: saved.codes.map((c) => cell(c)) };
  } catch { /* what cannot be read is none */ }
  return { open: null, language: prefs().language, cells: [] };
}

function save() {
  if (kept.open) sessionStorage.setItem(key, JSON.stringify({ open: kept.open, language: kept.language, codes: kept.cells.map((c) => c.code) }));
  else sessionStorage.removeItem(key);
}

// forget removes what a session has typed and seen.
export function forget() { kept = { open: null, language: prefs().language, cells: [] }; save(); }

export function Notebook({ who, go }: { who: Who; go(to: string): void }) {
  const languages = useLanguages();
  const [, redraw] = useState(0);
  const change = (to: Partial<Kept>) => { kept = { ...kept, ...to }; save(); redraw((n) => n + 1); };
  const put = (id: number, to: Partial<Cell>) => change({ cells: kept.cells.map((c) => (c.id === id ? { ...c, ...to } : c)) });
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const [ending, setEnding] = useState(false);
  const [running, setRunning] = useState(0); // the cell that runs; 0: none
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []); // the server interrupts a cell whose client goes away

  const attempt = async (what: string, f: () => Promise<unknown>) => {
    setBusy(what); setError("");
    try { await f(); } catch (e) { setError(message(e)); }
    setBusy("");
  };
  const open = () => attempt("Starting a kernel…", async () => {
    const sandbox = await post<Sandbox>("/v1/sandboxes", { language: kept.language, labels: { console: "notebook" } });
    try {
      const kernel = await post<Kernel>(`/v1/sandboxes/${sandbox.id}/kernels`, {});
      change({ open: { sandbox: sandbox.id, kernel }, cells: kept.cells.length ? kept.cells : [cell()] });
    } catch (e) {
      await request("DELETE", `/v1/sandboxes/${sandbox.id}`).catch(() => {}); // the first error is the one to tell
      throw e;
    }
  });
  const kernel = () => `/v1/sandboxes/${kept.open!.sandbox}/kernels/${kept.open!.kernel.id}`;
  const end = () => attempt("Ending…", async () => {
    try { await request("DELETE", `/v1/sandboxes/${kept.open!.sandbox}`); } catch (e) { if (!(e instanceof Failure && e.status === 404)) throw e; } // it has ended already
    change({ open: null, cells: kept.cells.map((c) => ({ ...c, output: null, result: null, error: "" })) });
  });
  // execute runs a cell, and reports whether those after it are to run.
  const execute = async (id: number): Promise<boolean> => {
    if (abort.current) return false;
    const a = new AbortController(), out = new Output();
    abort.current = a;
    setRunning(id); setError("");
    put(id, { output: out, result: null, error: "" });
    let ok = false;
    try {
      const result = await run(kernel() + "/cells", { code: kept.cells.find((c) => c.id === id)!.code }, (s, t) => out.push(s, t), a.signal);
      ok = result.status === "ok";
      put(id, { result });
    } catch (e) {
      if ((e as Error).name !== "AbortError") put(id, { error: message(e) });
    }
    abort.current = null;
    setRunning(0);
    return ok;
  };
  const all = async () => { for (const c of kept.cells) if (!(await execute(c.id))) return; };
  // advance runs a cell, and has one after it.
  const advance = (id: number) => {
    if (kept.cells.at(-1)!.id === id) change({ cells: [...kept.cells, cell()] });
    void execute(id);
  };

  if (!kept.open) return (
    <main class="page">
      <h1>Notebook</h1>
      {error && <Notice>{error}</Notice>}
      <div class="card empty">
        <Icon name="book" />
        <p>A notebook has a sandbox with an interpreter that keeps its state from cell to cell.</p>
        <div class="row wrap">
          <LanguageSelect id="notebook-language" value={kept.language} onChange={(language) => change({ language })} languages={languages} />
          <button class="primary" disabled={!who.write || busy !== ""} onClick={open}>{busy ? <span class="spinner" /> : <Icon name="play" />} {busy || "Start"}</button>
        </div>
        {!who.write && <p class="note">Your key may only look: running code needs the scope write.</p>}
      </div>
    </main>
  );
  const k = kept.open.kernel;
  return (
    <main class="page notebook">
      <header class="row spread wrap">
        <div class="title">
          <h1>Notebook</h1>
          <span class="note">{visible([k.language, k.version, k.flavor].filter(Boolean).join(" · "))} in <Link to={`/sandboxes/${kept.open.sandbox}`} go={go}>its sandbox</Link></span>
        </div>
        <div class="row wrap">
          {running > 0 ? <button class="danger" onClick={() => attempt("", () => request("POST", kernel() + "/interrupt"))}><Icon name="stop" /> Interrupt</button> : <button onClick={all}><Icon name="play" /> Run all</button>}
          <button onClick={() => attempt("Restarting…", () => request("POST", kernel() + "/restart"))} disabled={busy !== ""}><Icon name="refresh" /> Restart</button>
          <button class="danger" onClick={() => setEnding(true)} disabled={busy !== ""}><Icon name="trash" /> End</button>
        </div>
      </header>
      {busy && <p class="note" role="status"><span class="spinner" /> {busy}</p>}
      {error && <Notice onClose={() => setError("")}>{error}</Notice>}
      {kept.cells.map((c, i) => (
        <section key={c.id} class="card cell" aria-label={`Cell ${i + 1}`}>
          <div class="row spread cell-bar">
            <code class="muted">{running === c.id ? "[*]" : `[${c.result?.count ?? " "}]`}</code>
            <span class="row">
              <button class="ghost icon-only" aria-label={`Run cell ${i + 1}`} title="Shift+Enter" disabled={running > 0} onClick={() => execute(c.id)}>{running === c.id ? <span class="spinner" /> : <Icon name="play" />}</button>
              <button class="ghost icon-only" aria-label={`Remove cell ${i + 1}`} disabled={running === c.id || kept.cells.length === 1} onClick={() => change({ cells: kept.cells.filter((o) => o.id !== c.id) })}><Icon name="trash" /></button>
            </span>
          </div>
          <Editor value={c.code} language={k.language} label={`Code of cell ${i + 1}`} onChange={(code) => put(c.id, { code })} onRun={() => advance(c.id)} runAndNext autofocus={i > 0 && i === kept.cells.length - 1 && !c.output} />
          <CellResult cell={c} />
        </section>
      ))}
      <div><button onClick={() => change({ cells: [...kept.cells, cell()] })}><Icon name="plus" /> Add cell</button></div>
      {ending && <Confirm title="End the notebook?" text="Its kernel ends, and its sandbox is removed with its files. The code of the cells stays here." action="End it" onYes={end} onClose={() => setEnding(false)} />}
    </main>
  );
}

function CellResult({ cell: c }: { cell: Cell }) {
  if (!c.output && !c.error) return null;
  const r = c.result, problem = r?.error;
  const shown = (r?.value && valueOf(r.value)) || null;
  return (
    <div class="cell-result">
      {c.error && <Notice>{c.error}</Notice>}
      {c.output && <OutputView output={c.output} label="Output of the cell" />}
      {shown}
      {problem && <Colored text={problem.traceback || `${problem.name}: ${problem.message}`} />}
      {r && r.status !== "ok" && <StatusLine result={r} />}
      {r && <Details result={r} />}
    </div>
  );
}

// valueOf shows a value in the best of its forms that is a picture or text.
function valueOf(forms: Record<string, string>) {
  for (const mime of ["image/png", "image/jpeg", "image/gif", "image/webp"]) if (forms[mime]) return <img class="picture" src={`data:${mime};base64,${forms[mime]!.replace(/\s/g, "")}`} alt={visible(forms["text/plain"] ?? "The value").slice(0, 300)} />;
  if (forms["image/svg+xml"]) return <img class="picture" src={`data:image/svg+xml,${encodeURIComponent(forms["image/svg+xml"].toWellFormed())}`} alt={visible(forms["text/plain"] ?? "The value").slice(0, 300)} />;
  const text = forms["text/plain"] ?? Object.values(forms)[0] ?? "";
  return <Colored text={text} />;
}

const longest = 100_000;

// Colored shows a text of bounded length with its colours.
function Colored({ text }: { text: string }) {
  return (
    <pre class="text value" dir="ltr" tabIndex={0} role="region" aria-label="Value">
      {new Parser().parse(text.slice(0, longest)).map((s, i) => <span key={i} class={s.class}>{s.text}</span>)}
      {text.length > longest && "\n…"}
    </pre>
  );
}
