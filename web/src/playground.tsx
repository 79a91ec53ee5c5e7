import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, type Language, type Result, run, type Who } from "./api";
import { Editor } from "./editor";
import { Output, OutputView } from "./output";
import { prefs } from "./prefs";
import { Details, StatusLine } from "./result";
import { curl, go, python } from "./share";
import { CopyButton, Dialog, Icon, message, Notice, Tabs } from "./ui";

export const samples: Record<string, string> = {
  python: 'import math\n\nfor n in range(1, 11):\n    print(f"{n:2}! = {math.factorial(n):,}")\n',
  javascript: "const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));\nconsole.log(Array.from({ length: 15 }, (_, i) => fib(i)).join(' '));\n",
  java: 'public class Main {\n    public static void main(String[] args) {\n        System.out.println("Hello from Java " + Runtime.version().feature());\n    }\n}\n',
  cpp: '#include <iostream>\n\nint main() {\n  std::cout << "Hello from C++ " << __cplusplus << "\\n";\n}\n',
  go: 'package main\n\nimport (\n\t"fmt"\n\t"runtime"\n)\n\nfunc main() {\n\tfmt.Println("Hello from", runtime.Version())\n}\n',
  r: "x <- c(3, 1, 4, 1, 5, 9, 2, 6)\nprint(summary(x))\n",
  ruby: 'puts (1..15).map { |n| n % 15 == 0 ? "FizzBuzz" : n % 5 == 0 ? "Buzz" : n % 3 == 0 ? "Fizz" : n }.join(" ")\n',
  bash: 'for i in 1 2 3; do\n  printf "\\033[3%dmline %d\\033[0m\\n" "$i" "$i"\n  sleep 0.2\ndone\n',
};

// What of the playground outlives a change of the page.
const kept = { language: "", code: { ...samples } as Record<string, string>, stdin: "", output: null as Output | null, result: null as Result | null };

// forget removes what a session has typed and seen.
export function forget() { Object.assign(kept, { language: "", code: { ...samples }, stdin: "", output: null, result: null }); }

export function useLanguages(): Language[] {
  const [list, setList] = useState<Language[]>([]);
  useEffect(() => { get<{ languages: Language[] }>("/v1/languages").then((l) => setList(l.languages), () => setList([])); }, []);
  return list;
}

export function LanguageSelect({ value, onChange, languages, id, visible }: { value: string; onChange(l: string): void; languages: Language[]; id: string; visible?: boolean }) {
  const known = languages.some((l) => l.name === value) ? languages : [{ name: value, title: value }, ...languages];
  return (
    <>
      <label class={visible ? "" : "sr-only"} for={id}>Language</label>
      <select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {known.map((l) => <option key={l.name} value={l.name}>{l.title}</option>)}
      </select>
    </>
  );
}

export function Playground({ who }: { who: Who }) {
  const languages = useLanguages();
  const [language, setLanguage] = useState(() => kept.language || prefs().language);
  const [code, setCode] = useState(kept.code[language] ?? "");
  const [stdin, setStdin] = useState(kept.stdin);
  const [output, setOutput] = useState(kept.output);
  const [result, setResult] = useState(kept.result);
  const [error, setError] = useState("");
  const [sharing, setSharing] = useState(false);
  const [running, setRunning] = useState<AbortController | null>(null);
  const now = useRef(running);
  now.current = running;
  kept.code[language] = code;
  kept.stdin = stdin;
  kept.output = output;
  kept.result = result;
  useEffect(() => () => now.current?.abort(), []); // the server ends a program whose client goes away

  const choose = (l: string) => { kept.language = l; setLanguage(l); setCode(kept.code[l] ?? ""); };
  const start = async () => {
    if (now.current || !who.write) return;
    const abort = new AbortController(), out = new Output();
    now.current = abort;
    setRunning(abort); setOutput(out); setResult(null); setError("");
    try {
      setResult(await run("/v1/run", { language, code, stdin }, (stream, text) => out.push(stream, text), abort.signal));
    } catch (e) {
      if ((e as Error).name === "AbortError") setError("Stopped. What the program had written until then is below.");
      else setError(e instanceof Failure ? e.message : message(e));
    }
    setRunning(null);
  };
  return (
    <main class="playground">
      <h1 class="sr-only">Playground</h1>
      <section class="card pane" aria-label="Code">
        <div class="toolbar row spread">
          <LanguageSelect id="language" value={language} onChange={choose} languages={languages} />
          <div class="row">
            <button class="ghost" aria-label="Share" onClick={() => setSharing(true)}><Icon name="share" /> <span class="wide">Share</span></button>
            {running
              ? <button class="danger" onClick={() => running.abort()}><Icon name="stop" /> Stop</button>
              : <button class="primary" disabled={!who.write} onClick={start} title="Ctrl+Enter or ⌘+Enter"><Icon name="play" /> Run</button>}
          </div>
        </div>
        <Editor value={code} language={language} label="Code" onChange={setCode} onRun={start} autofocus={matchMedia("(pointer: fine)").matches} />
        <details class="stdin">
          <summary>Input{stdin ? ` · ${stdin.length} characters` : ""}</summary>
          <label class="sr-only" for="stdin">Standard input of the program</label>
          <textarea id="stdin" rows={4} value={stdin} spellcheck={false} placeholder="What the program reads from standard input" onInput={(e) => setStdin(e.currentTarget.value)} />
        </details>
      </section>
      <section class="card pane" aria-label="Result">
        <div class="toolbar row spread">
          {result ? <StatusLine result={result} /> : <div class="status-line" role="status">{running ? <><span class="spinner" /> Running…</> : <span class="muted">Output</span>}</div>}
        </div>
        <div class="results">
          {!who.write && <Notice kind="info">Your key may only look: running code needs the scope write.</Notice>}
          {error && <Notice kind={error.startsWith("Stopped") ? "info" : "error"}>{error}</Notice>}
          {output ? <OutputView output={output} label="Output of the program" /> : <Empty />}
          {result && <Details result={result} />}
        </div>
      </section>
      {sharing && <Share language={language} code={code} stdin={stdin} onClose={() => setSharing(false)} />}
    </main>
  );
}

function Empty() {
  return (
    <div class="empty">
      <Icon name="terminal" />
      <p>Run the code to see what it prints.</p>
      <p class="muted"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it in a fresh sandbox, which is removed afterwards.</p>
    </div>
  );
}

function Share(props: { language: string; code: string; stdin: string; onClose(): void }) {
  const [as, setAs] = useState("curl");
  const text = { curl, Go: go, Python: python }[as]!(location.origin, props);
  return (
    <Dialog title="Run it from a program" onClose={props.onClose}>
      <div class="row spread">
        <Tabs label="As" names={["curl", "Go", "Python"]} value={as} onChange={setAs} />
        <CopyButton text={text} />
      </div>
      <pre class="text snippet" tabIndex={0} role="region" aria-label={`As ${as}`}>{text}</pre>
      <p class="note">Set <code>LLMSANDBOX_KEY</code> to a key of this server first.</p>
    </Dialog>
  );
}
