import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./ansi";
import { Failure, get, type Key, post, request, type Who } from "./api";
import { time } from "./prefs";
import { Confirm, CopyButton, Dialog, Empty, Icon, message, Notice } from "./ui";

const scopes = [
  { name: "read", does: "look at sandboxes and their files" }, { name: "write", does: "make, use and remove sandboxes" },
  { name: "audit", does: "read the audit log" }, { name: "admin", does: "manage keys" },
] as const;

const state = (k: Key) => (k.revoked ? "revoked" : k.expires && new Date(k.expires).getTime() <= Date.now() ? "expired" : "active");

const day = 86400; // seconds

// Keys has a project's keys made and revoked.
export function Keys({ who, logout }: { who: Who; logout(): void }) {
  return (
    <main class="page">
      {who.admin ? <Manage who={who} logout={logout} /> : (
        <>
          <h1>Keys</h1>
          <Notice kind="info">This session may not manage keys: that needs the scope admin. On the server’s machine, make a key that has it, and log in with that:</Notice>
          <div class="card pad row spread wrap"><code class="secret">{make}</code><CopyButton text={make} /></div>
        </>
      )}
    </main>
  );
}

const make = "llmsandbox serve key create admin --scope read --scope write --scope admin";

function Manage({ who, logout }: { who: Who; logout(): void }) {
  const [keys, setKeys] = useState<Key[] | null>(null);
  const [next, setNext] = useState("");
  const [all, setAll] = useState(false);
  const [error, setError] = useState("");
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const asked = useRef(0);
  const load = async (after: string) => {
    const mine = ++asked.current;
    try {
      const page = await get<{ keys: Key[]; next?: string }>(`/v1/keys?limit=100&usable=${!all}${after && `&after=${encodeURIComponent(after)}`}`);
      if (mine !== asked.current) return; // something else is asked for by now
      setKeys((k) => [...(after ? k ?? [] : []), ...page.keys]);
      setNext(page.next ?? ""); setError("");
    } catch (e) { if (mine === asked.current) setError(message(e)); }
  };
  useEffect(() => { void load(""); }, [all]);
  const revoke = async (k: Key) => { try { await request("DELETE", `/v1/keys/${encodeURIComponent(k.id)}`); await load(""); } catch (e) { setError(message(e)); } };
  return (
    <>
      <header class="row spread wrap">
        <h1>Keys</h1>
        <div class="row wrap">
          <label class="check"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> Show revoked and expired</label>
          <button class="primary" onClick={() => setMaking(true)}><Icon name="plus" /> New key</button>
        </div>
      </header>
      {error && <Notice>{error}</Notice>}
      {keys && keys.length === 0 && <Empty icon="key" title="There are no keys.">Programs use the sandboxes of your project with keys.</Empty>}
      {keys && keys.length > 0 && (
        <section class="card table-card" aria-label="Keys of the project">
          <table class="stacked">
            <thead><tr>{["Name", "Scopes", "Made", "Ends", "State"].map((h) => <th key={h} scope="col">{h}</th>)}<th><span class="sr-only">Actions</span></th></tr></thead>
            <tbody>
              {keys.map((k) => (
                <tr key={k.id}>
                  <td class="name"><strong>{visible(k.name)}</strong> <code class="muted">{visible(k.id)}</code></td>
                  <td><span class="row wrap">{k.scopes.map((s) => <span key={s} class="badge">{visible(s)}</span>)}</span></td>
                  <td class="time"><span class="only-stacked note">made </span><time dateTime={k.created}>{time(k.created)}</time></td>
                  <td class="time"><span class="only-stacked note">ends </span>{k.expires ? <time dateTime={k.expires}>{time(k.expires)}</time> : "never"}</td>
                  <td><span class={`badge ${state(k) === "active" ? "good" : "bad"}`}>{state(k)}</span>{k.id === who.key_id && <> <span class="badge accent">this session’s</span></>}</td>
                  <td class="actions">{!k.revoked && <button class="danger" aria-label={`Revoke ${visible(k.name)}`} onClick={() => setRevoking(k)}>Revoke</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {next && <div class="row center"><button onClick={() => load(next)}><Icon name="down" /> Older</button></div>}
      {making && <NewKey who={who} logout={logout} onMade={() => load("")} onClose={() => setMaking(false)} />}
      {revoking && (
        <Confirm title={`Revoke ${visible(revoking.name)}?`} action="Revoke it" onYes={() => revoke(revoking)} onClose={() => setRevoking(null)}
          text={revoking.id === who.key_id ? "It is the key of this session, which ends with it. This cannot be undone." : "Programs that use it are refused at once. This cannot be undone."} />
      )}
    </>
  );
}

// NewKey makes a key and shows its secret, once.
function NewKey({ who, logout, onMade, onClose }: { who: Who; logout(): void; onMade(): void; onClose(): void }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string[]>(() => scopes.map((s) => s.name).filter((s) => (s === "read" || s === "write") && who[s]));
  const ends = ["1", "7", "30", "90", "365"].filter((d) => !who.expires || Date.now() + Number(d) * day * 1000 < new Date(who.expires).getTime());
  const [days, setDays] = useState(ends.includes("90") ? "90" : "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [old, setOld] = useState(false); // the login is
  const [secret, setSecret] = useState("");
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true); setError("");
    try {
      const made = await post<Key & { secret: string }>("/v1/keys", { name, scopes: chosen, ...(days ? { expires_seconds: Number(days) * day } : {}) });
      setSecret(made.secret);
      onMade();
    } catch (err) { setError(message(err)); setOld(err instanceof Failure && err.code === "login_again"); }
    setBusy(false);
  };
  if (secret) {
    return (
      <Dialog key="made" title="The key is made" onClose={onClose}>
        <p>This is its secret. Copy it now: <strong>it is not shown again.</strong></p>
        <pre class="snippet secret" tabIndex={0} aria-label="Secret">{secret}</pre>
        <div class="row end"><CopyButton text={secret} /><button class="primary" onClick={onClose}>Done</button></div>
      </Dialog>
    );
  }
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="fields" onSubmit={submit}>
        {error && <Notice>{error}</Notice>}
        {old && <div class="row end"><button type="button" class="primary" onClick={logout}>Log in again</button></div>}
        <div class="field"><label for="key-name">Name</label><input id="key-name" required maxLength={64} pattern="[A-Za-z0-9._\-]+" title="Letters, digits, and . _ -" placeholder="ci" autocomplete="off" spellcheck={false} value={name} onInput={(e) => setName(e.currentTarget.value)} /></div>
        <fieldset>
          <legend>Scopes</legend>
          {scopes.filter((s) => who[s.name]).map((s) => (
            <label class="check" key={s.name}>
              <input type="checkbox" checked={chosen.includes(s.name)} onChange={(e) => setChosen(e.currentTarget.checked ? [...chosen, s.name] : chosen.filter((c) => c !== s.name))} />
              <span>{s.name} <span class="note">{s.does}</span></span>
            </label>
          ))}
        </fieldset>
        <div class="field">
          <label for="key-days">Ends</label>
          <select id="key-days" value={days} onChange={(e) => setDays(e.currentTarget.value)}>
            {ends.map((d) => <option key={d} value={d}>in {d} {d === "1" ? "day" : "days"}</option>)}
            <option value="">{who.expires ? "with the key of this session" : "never"}</option>
          </select>
        </div>
        <div class="row end"><button class="primary" disabled={busy || chosen.length === 0}>{busy ? <span class="spinner" /> : <Icon name="plus" />} Create</button></div>
      </form>
    </Dialog>
  );
}
