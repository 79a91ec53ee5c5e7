import { useState } from "preact/hooks";
import { get, type Quota, type Quotas, type Who } from "./api";
import { LanguageSelect, useLanguages } from "./playground";
import { choose, prefs, themes, time, zones } from "./prefs";
import { bytes, Choice, Icon, message, Notice, Tile, useLive } from "./ui";

// Settings shows who is logged in and at what server, and what can be chosen for this browser.
export function Settings({ who, logout }: { who: Who; logout(): void }) {
  const languages = useLanguages();
  const [chosen, setChosen] = useState(prefs);
  const set = (name: keyof typeof chosen) => (value: string) => { choose(name, value); setChosen(prefs()); };
  const scopes = (["read", "write", "audit", "admin"] as const).filter((s) => who[s]);
  return (
    <main class="page settings">
      <h1>Settings</h1>
      <section class="card" aria-labelledby="session">
        <header class="row spread wrap"><h2 id="session">Session</h2><button onClick={logout}><Icon name="exit" /> Log out</button></header>
        <dl class="tiles">
          <Tile name="Key" value={who.key_name || "none is needed"} />
          <Tile name="Project" value={<code>{who.project}</code>} />
          <Tile name="Scopes" value={<span class="row wrap">{scopes.map((s) => <span key={s} class="badge">{s}</span>)}</span>} />
          <Tile name="Ends" value={who.ends ? time(who.ends) : "with the server"} />
        </dl>
      </section>
      <section class="card" aria-labelledby="browser">
        <header><h2 id="browser">This browser</h2></header>
        <Choice label="Theme" name="theme" options={themes} value={chosen.theme} onChange={set("theme")} />
        <Choice label="Times" name="zone" options={zones} value={chosen.zone} onChange={set("zone")} />
        <div class="field narrow"><LanguageSelect id="default-language" visible value={chosen.language} onChange={set("language")} languages={languages} /><p class="note">That the playground, notebooks and new sandboxes begin with.</p></div>
      </section>
      {who.read && <Limits />}
      <section class="card" aria-labelledby="server">
        <header><h2 id="server">Server</h2></header>
        <dl class="tiles">
          <Tile name="Version" value={who.version || "not known"} />
          <Tile name="Address" value={location.origin} />
          <Tile name="Domain for ports" value={who.ports ? "set" : "none"} />
        </dl>
      </section>
    </main>
  );
}

// Limits shows what the project has of what it may have.
function Limits() {
  const [quotas, setQuotas] = useState<Quotas | null>(null);
  const [error, setError] = useState("");
  useLive(() => get<Quotas>("/v1/quotas").then((q) => { setQuotas(q); setError(""); }, (e: unknown) => setError(message(e))), []);
  const tile = (name: string, q: Quota, text: (n: number) => string) =>
    <Tile name={name} value={text(q.used)} more={q.most ? `of ${text(q.most)}` : "no bound"} part={q.most ? q.used / q.most : undefined} />;
  return (
    <section class="card" aria-labelledby="quotas">
      <header><h2 id="quotas">Quotas of the project</h2></header>
      {error && <Notice>{error}</Notice>}
      {quotas && (
        <dl class="tiles">
          {tile("Sandboxes", quotas.sandboxes, String)}
          {tile("Memory limits together", quotas.memory_bytes, bytes)}
          {tile("Disk limits together", quotas.disk_bytes, bytes)}
          {quotas.volumes ? tile("Volumes", quotas.volumes, String) : <Tile name="Volumes" value="none" />}
          <Tile name="Requests of a key" value={quotas.requests_per_second ? `${quotas.requests_per_second} a second` : "no bound"} />
        </dl>
      )}
    </section>
  );
}
