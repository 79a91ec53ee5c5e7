import { useState } from "preact/hooks";
import { get } from "./api";
import { add, Chart, type Point } from "./chart";
import { useLanguages } from "./playground";
import { Empty, message, Notice, Tile, useLive } from "./ui";

interface Pool { languages: string[]; kept: number; ready: number; creating: number; in_use: number; waiting: number; hits: number; misses: number }

// Pools shows the sandboxes that are kept ready for programs.
export function Pools() {
  const titles = new Map(useLanguages().map((l) => [l.name, l.title]));
  const [pool, setPool] = useState<Pool | null>(null);
  const [inUse, setInUse] = useState<Point[]>([]);
  const [waiting, setWaiting] = useState<Point[]>([]);
  const [error, setError] = useState("");
  useLive(async () => {
    try {
      const p = await get<Pool>("/v1/pool"), at = Date.now();
      setPool(p); setError("");
      setInUse((all) => add(all, { at, value: p.in_use }));
      setWaiting((all) => add(all, { at, value: p.waiting }));
    } catch (e) { setError(message(e)); }
  }, [], 2000);
  const all = pool ? pool.kept * pool.languages.length : 0, programs = pool ? pool.hits + pool.misses : 0;
  const share = pool && programs > 0 ? pool.hits / programs : undefined;
  return (
    <main class="page">
      <header><h1>Pools</h1><p class="muted">Sandboxes that are kept ready, so that programs of the playground and of <code>/v1/run</code> begin at once. They are the whole server's.</p></header>
      {error && <Notice>{error}</Notice>}
      {pool && (
        <>
          {all === 0 && <Empty icon="layers" title="No sandboxes are kept ready.">Each program waits until one is made. The server's operator sets how many there are with <code>--warm</code> and <code>--warm-language</code>.</Empty>}
          {all > 0 && (
            <section class="card pad fields" aria-label="Kept ready">
              <h2>Kept ready</h2>
              <div class="row wrap">{pool.languages.map((l) => <span key={l} class="badge accent">{titles.get(l) ?? l} × {pool.kept}</span>)}</div>
            </section>
          )}
          <dl class="tiles">
            <Chart name="In use" points={inUse} format={(n) => String(n)} more="programs run now" />
            <Chart name="Waiting" points={waiting} format={(n) => String(n)} more="programs for a sandbox" />
          </dl>
          <dl class="tiles">
            {all > 0 && <Tile name="Ready" value={pool.ready} more={`of ${all}`} part={pool.ready / all} />}
            <Tile name="Being made" value={pool.creating} />
            <Tile name="Hits" value={pool.hits.toLocaleString()} more="found one ready" />
            <Tile name="Misses" value={pool.misses.toLocaleString()} more="waited for one" />
            <Tile name="Hit rate" value={share === undefined ? "no programs yet" : `${Math.floor(share * 100)} %`} part={share} />
          </dl>
          <p class="note">Hits and misses count since the server was started.</p>
        </>
      )}
    </main>
  );
}
