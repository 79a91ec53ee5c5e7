import { useState } from "preact/hooks";
import { visible } from "./ansi";
import { get, post, type Who } from "./api";
import { time } from "./prefs";
import { CopyButton, Dialog, Icon, message, Notice, useLive } from "./ui";

interface Shared { url: string; expires: string }

const lasting = { "10 minutes": 600, "an hour": 3600, "8 hours": 8 * 3600, "a day": 24 * 3600 };

const share = (path: string, port: number, seconds: number) => post<Shared>(path + "/shares", { port, expires_seconds: seconds });

// isAddress lets nothing be opened but what a share can be.
const isAddress = (url: string) => /^https?:/.test(url);

// Ports shows what programs in a sandbox listen on, opens it and shares it.
export function Ports({ path, who }: { path: string; who: Who }) {
  const [ports, setPorts] = useState<Map<number, string[]> | null>(null);
  const [error, setError] = useState("");
  const [opened, setOpened] = useState<Shared | null>(null);
  const [sharing, setSharing] = useState(0);
  useLive(async () => {
    try {
      const by = new Map<number, string[]>();
      for (const { port, address } of (await get<{ ports: { port: number; address: string }[] }>(path + "/ports")).ports) by.set(port, [...(by.get(port) ?? []), address]);
      setPorts(by); setError("");
    } catch (e) { setError(message(e)); }
  }, [path], 2000);
  const open = async (port: number) => {
    try {
      const made = await share(path, port, lasting["an hour"]);
      if (isAddress(made.url)) { setOpened(made); window.open(made.url, "_blank", "noopener"); }
    } catch (e) { setError(message(e)); }
  };
  return (
    <section class="card pane ports" aria-label="Ports">
      <div class="toolbar row spread"><h2>Ports</h2>{ports === null && !error && <span class="spinner" />}</div>
      {error && <div class="pad"><Notice>{visible(error)}</Notice></div>}
      {!who.ports && <div class="pad"><Notice kind="info">This server has no domain for ports, so that pages open without their scripts and styles, and cannot be shared. Its operator sets one with <code>--ports-domain</code>.</Notice></div>}
      {opened && <div class="pad"><Notice kind="info" onClose={() => setOpened(null)}>If no page has opened, your browser has kept it back: <a href={opened.url} target="_blank" rel="noopener noreferrer">open it here</a>. The address is good until {time(opened.expires)}.</Notice></div>}
      {ports?.size === 0 && <div class="empty"><Icon name="plug" /><p>Nothing listens in the sandbox.</p><p class="muted">Start a server in the terminal, such as <code>python3 -m http.server 8000</code>.</p></div>}
      <ul class="entries">
        {[...(ports ?? [])].map(([port, addresses]) => (
          <li key={port} class="row wrap">
            <span class="entry row"><span class="badge good">{port}</span><code class="name muted">{addresses.join(", ")}</code></span>
            {who.ports
              ? <><button class="ghost" disabled={!who.write} aria-label={`Open ${port}`} onClick={() => open(port)}><Icon name="link" /> Open</button>
                <button class="ghost" disabled={!who.write} aria-label={`Share ${port}`} onClick={() => setSharing(port)}><Icon name="share" /> Share</button></>
              : who.write && <a class="button ghost" aria-label={`Open ${port}`} href={`${path}/ports/${port}/`} target="_blank" rel="noopener noreferrer"><Icon name="link" /> Open</a>}
          </li>
        ))}
      </ul>
      {sharing > 0 && <Share path={path} port={sharing} onClose={() => setSharing(0)} />}
    </section>
  );
}

// Share makes an address that anybody can use.
function Share({ path, port, onClose }: { path: string; port: number; onClose(): void }) {
  const [lasts, setLasts] = useState<keyof typeof lasting>("an hour");
  const [made, setMade] = useState<Shared | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const make = async (e: Event) => {
    e.preventDefault();
    setBusy(true); setError("");
    try { setMade(await share(path, port, lasting[lasts])); } catch (err) { setError(message(err)); }
    setBusy(false);
  };
  return (
    <Dialog title={`Share port ${port}`} onClose={onClose}>
      <form class="fields" onSubmit={make}>
        {error && <Notice>{error}</Notice>}
        <p class="muted">Whoever has the address can use what listens there, without a key, until its time is over or the sandbox ends.</p>
        <div class="field">
          <label for="lasts">Good for</label>
          <select id="lasts" value={lasts} onChange={(e) => { setLasts(e.currentTarget.value as keyof typeof lasting); setMade(null); }}>
            {Object.keys(lasting).map((name) => <option key={name}>{name}</option>)}
          </select>
        </div>
        {made && (
          <div class="field">
            <label for="address">Address</label>
            <div class="row"><input id="address" class="mono" readOnly value={made.url} onFocus={(e) => e.currentTarget.select()} /><CopyButton text={made.url} /></div>
            <p class="note" role="status">Good until {time(made.expires)}.</p>
          </div>
        )}
        <div class="row end">
          {made && isAddress(made.url) && <a class="button" href={made.url} target="_blank" rel="noopener noreferrer"><Icon name="link" /> Open</a>}
          <button class={made ? "" : "primary"} disabled={busy}>{busy ? <span class="spinner" /> : <Icon name="share" />} {made ? "Make another" : "Make the address"}</button>
        </div>
      </form>
    </Dialog>
  );
}
