import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, get, request, whenSignedOut, type Who } from "./api";
import { Audit, forget as forgetAudit } from "./audit";
import { Keys } from "./keys";
import { Login, Logo } from "./login";
import { forget as forgetNotebook, Notebook } from "./notebook";
import { forget as forgetPlayground, Playground } from "./playground";
import { Pools } from "./pools";
import "./prefs";
import { SandboxPage, Sandboxes } from "./sandboxes";
import { Reference } from "./reference";
import { Settings } from "./settings";
import { Icon, Link, message, Notice } from "./ui";
import { Usage } from "./usage";

const pages = [
  { path: "/", title: "Playground", icon: "code" },
  { path: "/notebook", title: "Notebook", icon: "book" },
  { path: "/sandboxes", title: "Sandboxes", icon: "box" },
];
// Those that a phone has behind a button.
const morePages = [
  { path: "/pools", title: "Pools", icon: "layers" },
  { path: "/usage", title: "Usage", icon: "chart" },
  { path: "/keys", title: "Keys", icon: "key" },
  { path: "/audit", title: "Audit", icon: "log" },
  { path: "/reference", title: "API", icon: "braces" },
  { path: "/settings", title: "Settings", icon: "sliders" },
];

function forget() { forgetPlayground(); forgetNotebook(); forgetAudit(); sessionStorage.clear(); }

function App() {
  const [path, setPath] = useState(location.pathname);
  const [who, setWho] = useState<Who | null | undefined>(undefined); // undefined: not known yet
  const [error, setError] = useState("");
  const [more, setMore] = useState(false);
  const go = (to: string) => { history.pushState(null, "", to); setPath(to); setMore(false); };
  const look = () => get<Who>("/console/session").then((w) => { setWho(w); setError(""); }, (e: unknown) => {
    if (e instanceof Failure && e.status === 401) setWho(null);
    else setError(message(e));
  });
  useEffect(() => {
    whenSignedOut(() => { forget(); setWho(null); });
    addEventListener("popstate", () => setPath(location.pathname));
    if (location.pathname === "/login" && location.hash) { forget(); setWho(null); } // it may be somebody else who logs in
    else void look();
  }, []);
  useEffect(() => { document.title = `${who ? [...pages, ...morePages].find((p) => isAt(path, p.path))?.title ?? "Console" : "Log in"} · LLM Sandbox`; }, [path, who]);

  if (error) return <main class="login"><Notice>{error}</Notice><button onClick={look}>Try again</button></main>;
  if (who === undefined) return <main class="login"><h1 class="sr-only">LLM Sandbox</h1><span class="spinner" /></main>;
  if (who === null && path === "/reference") return <Reference alone />;
  if (who === null) return <Login onDone={() => { if (location.pathname === "/login") { history.replaceState(null, "", "/"); setPath("/"); } void look(); }} />;
  const logout = async () => {
    try { await request("POST", "/console/logout"); forget(); setWho(null); } catch (e) { setError(message(e)); }
  };
  return (
    <div class="shell">
      <a class="skip" href="#content">Skip to the content</a>
      <nav aria-label="Pages">
        <div class="brand"><Logo /><span>LLM Sandbox</span></div>
        <PageList of={pages} path={path} go={go} />
        <button class={`ghost menu${morePages.some((p) => isAt(path, p.path)) ? " at" : ""}`} aria-expanded={more} onClick={() => setMore(!more)}><Icon name="more" /><span>More</span></button>
        <div class={more ? "rest open" : "rest"} onKeyDown={(e) => { if (e.key === "Escape") setMore(false); }}>
          <PageList of={morePages} path={path} go={go} />
          <div class="foot">
            <span class="who muted" title="The key of this session">{who.key_name}</span>
            <button class="ghost icon-only" aria-label="Log out" title="Log out" onClick={logout}><Icon name="exit" /></button>
          </div>
        </div>
      </nav>
      <div id="content" tabIndex={-1}><Page path={path} who={who} go={go} logout={logout} /></div>
    </div>
  );
}

function PageList({ of, path, go }: { of: typeof pages; path: string; go(to: string): void }) {
  return (
    <ul>
      {of.map((p) => <li key={p.path}><Link to={p.path} go={go} aria-current={isAt(path, p.path) ? "page" : undefined}><Icon name={p.icon} /><span>{p.title}</span></Link></li>)}
    </ul>
  );
}

const isAt = (path: string, page: string) => path === page || (page !== "/" && path.startsWith(page + "/"));

function Page({ path, who, go, logout }: { path: string; who: Who; go(to: string): void; logout(): void }) {
  if (path === "/notebook") return <Notebook who={who} go={go} />;
  if (path === "/sandboxes") return <Sandboxes who={who} go={go} />;
  if (path.startsWith("/sandboxes/")) return <SandboxPage key={path} id={path.slice("/sandboxes/".length)} who={who} go={go} />;
  if (path === "/reference") return <Reference />;
  if (path === "/usage") return <Usage />;
  if (path === "/keys") return <Keys who={who} logout={logout} />;
  if (path === "/pools") return <Pools />;
  if (path === "/settings") return <Settings who={who} logout={logout} />;
  if (path === "/audit") return <Audit who={who} go={go} />;
  return <Playground who={who} />;
}

render(<App />, document.getElementById("app")!);
