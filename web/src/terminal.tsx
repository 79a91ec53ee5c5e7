import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal as Screen } from "@xterm/xterm";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { type Problem, request, type Result, type Who } from "./api";
import { Details, StatusLine } from "./result";
import { bytes, Icon, message, Notice } from "./ui";

const messageMost = 16 * 1024; // bytes of what is typed; the server takes more
const pendingMost = 32 << 20; // bytes that have come and are not shown yet

// The processes of this tab's terminals, so that a reload finds them again.
const prefix = "terminal:";
const processOf = (sandbox: string) => Number(sessionStorage.getItem(prefix + sandbox)) || 0;
const remember = (sandbox: string, process: number) => (process ? sessionStorage.setItem(prefix + sandbox, String(process)) : sessionStorage.removeItem(prefix + sandbox));

// theme is that of the page, in the colours of its style sheet.
function theme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue("--" + name).trim();
  const colors: Record<string, string> = {
    background: of("surface"), foreground: of("text"), cursor: of("accent-text"), cursorAccent: of("surface"), selectionBackground: of("selection"),
    scrollbarSliderBackground: of("border"), scrollbarSliderHoverBackground: of("control"), scrollbarSliderActiveBackground: of("control"),
  };
  for (const name of ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]) {
    colors[name] = of("ansi-" + name);
    colors["bright" + name[0]!.toUpperCase() + name.slice(1)] = of("ansi-" + name);
  }
  return colors;
}

const inert = () => true;

// newScreen is an empty screen. What a program says to the terminal beside text changes the screen alone: no link, title, clipboard or window of the page.
function newScreen(): { screen: Screen; fit: FitAddon } {
  const screen = new Screen({
    theme: theme(), fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize: 13, lineHeight: 1.2,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches, scrollback: 5000, minimumContrastRatio: 4.5, macOptionIsMeta: true,
  });
  for (const osc of [0, 1, 2, 8, 52]) screen.parser.registerOscHandler(osc, inert); // titles, links, the clipboard
  const fit = new FitAddon();
  screen.loadAddon(fit);
  return { screen, fit };
}

type State = "none" | "opening" | "open" | "cut off";

export function Terminal({ id, path, who, shown }: { id: string; path: string; who: Who; shown: boolean }) {
  const host = useRef<HTMLDivElement>(null), bar = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null), fit = useRef<FitAddon | null>(null), socket = useRef<WebSocket | null>(null);
  const [state, setState] = useState<State>("none");
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState("");
  const latest = useRef(shown);
  latest.current = shown;
  const says = useRef(false); // whether what the screen answers to the program is sent
  const send = (data: Uint8Array<ArrayBuffer>) => {
    if (socket.current?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < data.length; at += messageMost) socket.current.send(data.subarray(at, at + messageMost));
  };
  const type = (text: string) => { says.current = true; send(new TextEncoder().encode(text)); screen.current?.focus(); };

  useEffect(() => {
    const made = newScreen(), s = made.screen;
    screen.current = s;
    fit.current = made.fit;
    s.open(host.current!);
    s.textarea!.setAttribute("aria-label", "Terminal");
    s.textarea!.setAttribute("aria-description", "Ctrl+M leaves the terminal");
    s.onData((text) => { if (says.current) send(new TextEncoder().encode(text)); });
    s.onBinary((text) => { if (says.current) send(Uint8Array.from(text, (c) => c.charCodeAt(0))); });
    s.onResize(({ cols, rows }) => { if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(JSON.stringify({ resize: { cols, rows } })); });
    let leaving = false; // until a key is let go of, which the screen has to see
    s.attachCustomKeyEventHandler((e) => {
      if (e.type === "keyup" && leaving) { leaving = false; bar.current!.querySelector("button")?.focus(); }
      const control = e.ctrlKey && !e.shiftKey && !e.altKey && !e.metaKey;
      if (control && e.key === "m") { // is Enter to programs, which has a key of its own; so the keyboard gets out
        e.preventDefault();
        leaving ||= e.type === "keydown";
        return false;
      }
      if (control && e.key === "c" && s.hasSelection()) { // copies, and ends the next program
        if (e.type === "keydown") setTimeout(() => s.clearSelection());
        return false;
      }
      return !(control && e.key === "v"); // pastes
    });
    const shape = new ResizeObserver(() => { if (host.current!.offsetHeight) made.fit.fit(); });
    shape.observe(host.current!);
    const colors = new MutationObserver(() => { s.options.theme = theme(); });
    colors.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const acts = () => { says.current = true; };
    const acting = ["keydown", "paste", "mousedown", "input"] as const;
    for (const event of acting) host.current!.addEventListener(event, acts, true);
    if (processOf(id)) open();
    return () => {
      shape.disconnect();
      colors.disconnect();
      const held = socket.current;
      socket.current = null; // nothing is told any more; the program goes on
      held?.close();
      s.dispose();
      screen.current = null;
    };
  }, []);
  useEffect(() => { if (shown) { fit.current!.fit(); if (state === "open") screen.current!.focus(); } }, [shown]);

  // open begins a shell, or attaches to what this tab has begun.
  function open() {
    const s = screen.current!, process = processOf(id);
    fit.current!.fit();
    s.reset();
    setState("opening"); setResult(null); setError("");
    // The server sends the end of what was written before; the questions in it to the terminal have been answered.
    says.current = !process;
    const query = `?cols=${s.cols}&rows=${s.rows}` + (process ? `&process=${process}` : "");
    const ws = new WebSocket(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${path}/terminals${query}`, "llmsandbox.terminal");
    ws.binaryType = "arraybuffer";
    socket.current = ws;
    let begun = false, told = false, pending = 0;
    ws.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (socket.current !== ws) return;
      if (typeof data !== "string") {
        pending += data.byteLength;
        s.write(new Uint8Array(data), () => { pending -= data.byteLength; });
        if (pending > pendingMost) { ws.close(); setError(`The program writes faster than it can be shown: ${bytes(pending)} wait. It goes on.`); }
        return;
      }
      const event = JSON.parse(data) as { process?: number; result?: Result; problem?: Problem };
      if (event.process) { begun = true; remember(id, event.process); setState("open"); if (latest.current) s.focus(); }
      if (event.result) { told = true; remember(id, 0); setResult(event.result); }
      if (event.problem) { told = true; remember(id, 0); setError(event.problem.detail); }
    };
    ws.onclose = async () => {
      if (socket.current !== ws) return;
      socket.current = null;
      setState(begun && !told ? "cut off" : "none");
      if (begun || told) return;
      try { // a browser does not say why there is no WebSocket, and the same without one does
        await request("GET", `${path}/terminals${query}`);
      } catch (e) { if (screen.current) setError(message(e)); }
    };
  }
  const end = async () => {
    try { await request("DELETE", `${path}/terminals/${processOf(id)}`); } catch (e) { setError(message(e)); }
  };
  const again = processOf(id) > 0;
  return (
    <section class="card pane terminal-pane" aria-label="Terminal" hidden={!shown}>
      <div class="toolbar row spread wrap" ref={bar}>
        {result ? <StatusLine result={result} /> : (
          <div class="status-line" role="status">
            {state === "opening" ? <><span class="spinner" /> Opening…</> : state === "open" ? <span><span class="badge good">open</span></span> : state === "cut off" ? <span>The connection has ended, and what runs goes on.</span> : <span class="muted">A shell in the sandbox</span>}
          </div>
        )}
        <div class="row">
          {state === "open" && <span class="note wide"><kbd>Ctrl</kbd> <kbd>M</kbd> leaves it</span>}
          {state === "open" || state === "opening"
            ? <button class="danger" disabled={state !== "open"} onClick={end}><Icon name="stop" /> End</button>
            : <button class="primary" disabled={!who.write} onClick={() => { open(); screen.current!.focus(); }}><Icon name="terminal" /> {again ? "Attach again" : "Open"}</button>}
        </div>
      </div>
      {error && <div class="pad"><Notice onClose={() => setError("")}>{visible(error)}</Notice></div>}
      {!who.write && <div class="pad"><Notice kind="info">Your key may only look: a terminal needs the scope write.</Notice></div>}
      {result && <div class="pad"><Details result={{ ...result, stdout_truncated: false, stderr_truncated: false }} /></div>}
      <div class="terminal" ref={host} />
      <div class="keys row" role="group" aria-label="Keys">
        {Object.entries({ "Ctrl C": "\x03", "Ctrl D": "\x04", Esc: "\x1b", Tab: "\t", "↑": "\x1b[A", "↓": "\x1b[B", "←": "\x1b[D", "→": "\x1b[C" }).map(([name, text]) => (
          <button key={name} disabled={state !== "open"} aria-label={{ "↑": "Up", "↓": "Down", "←": "Left", "→": "Right" }[name] ?? name} onClick={() => type(text)}>{name}</button>
        ))}
      </div>
    </section>
  );
}
