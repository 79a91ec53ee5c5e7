import { useEffect, useState } from "preact/hooks";
import { get, json, request } from "./api";
import { Icon, message, Notice } from "./ui";

async function login(body: { token: string } | { key: string }) { await request("POST", "/console/login", { ...json(body), quiet: true }); }

// Why a login with an issuer failed, as the server says it in the address.
const failures: Record<string, string> = {
  cancelled: "The issuer did not log you in.",
  expired: "This login began in another browser, or too long ago. Log in again.",
  issuer: "The issuer does not answer as it should. The server's log says why.",
  server: "The server cannot keep sessions now. Try again later.",
  nobody: "You are logged in with the issuer, and have no access to this server. Ask those who run it.",
};

// Login opens a session: with the token of a link, which is in the fragment of the address so that neither a log nor a page that is loaded ahead
// has it, with a key, or with an issuer, if the server has one.
export function Login({ onDone }: { onDone(): void }) {
  const [token] = useState(() => (location.pathname === "/login" ? location.hash.slice(1) : ""));
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(token !== "");
  const [error, setError] = useState(() => failures[new URLSearchParams(location.search).get("failed") ?? ""] ?? "");
  const [issuer, setIssuer] = useState("");
  const attempt = async (body: { token: string } | { key: string }) => {
    setBusy(true); setError("");
    try { await login(body); onDone(); } catch (e) { setError(message(e)); setBusy(false); }
  };
  const leave = async () => {
    setBusy(true); setError("");
    try {
      const { url } = (await (await request("POST", "/console/oidc", { quiet: true })).json()) as { url: string };
      if (!/^https?:/.test(url)) throw new Error("The issuer's page has no address that can be opened.");
      location.assign(url);
    } catch (e) { setError(message(e)); setBusy(false); }
  };
  useEffect(() => {
    const back = (e: PageTransitionEvent) => { if (e.persisted) setBusy(false); };
    addEventListener("pageshow", back);
    get<{ issuer?: string }>("/console/login").then((ways) => setIssuer(ways.issuer ?? ""), () => {}); // there are keys
    return () => removeEventListener("pageshow", back);
  }, []);
  useEffect(() => {
    if (!token) return;
    history.replaceState(null, "", "/login"); // it is not to stay in the address
    void attempt({ token });
  }, []);
  return (
    <main class="login">
      <form class="card" onSubmit={(e) => { e.preventDefault(); void attempt({ key: key.trim() }); }}>
        <Logo />
        <h1>LLM Sandbox</h1>
        <p class="muted">Run code without trusting it.</p>
        {error && <Notice>{error}</Notice>}
        {issuer && <><button type="button" class="primary" disabled={busy} onClick={leave}>Log in with {issuer}</button><p class="or muted">or</p></>}
        <label for="key">Key</label>
        <input id="key" type="password" autocomplete="current-password" required value={key} onInput={(e) => setKey(e.currentTarget.value)} disabled={busy} />
        <button class={issuer ? undefined : "primary"} disabled={busy}>{busy ? <><span class="spinner" /> Logging in…</> : <><Icon name="exit" /> Log in</>}</button>
        <p class="note">{issuer ? "" : "The server prints its key when it starts. "}<code>llmsandbox serve key create</code> makes {issuer ? "keys" : "others"}.</p>
      </form>
    </main>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
      <rect width="32" height="32" rx="9" /><path d="M16 6.500 24.500 11v10L16 25.500 7.500 21V11z" /><path d="m12 13 3.500 3-3.500 3M17 19.500h4" />
    </svg>
  );
}
