import { useState } from "preact/hooks";
import { type Amount, get, type ProjectUsage, type Quota, type Quotas } from "./api";
import { bytes, duration, Empty, message, Notice, Tile, useLive } from "./ui";

const hour = 3600_000, day = 24 * hour; // milliseconds

const ranges = [{ name: "24 hours", ms: day, rows: "hours" }, { name: "7 days", ms: 7 * day, rows: "days" }, { name: "31 days", ms: 31 * day, rows: "days" }] as const;

const columns = ["CPU time", "Sent", "Received", "Programs", "Time of sandboxes"];

const none: Amount = { cpu_seconds: 0, sent_bytes: 0, received_bytes: 0, runs: 0, sandbox_seconds: 0 };

const plus = (a: Amount, b: Amount): Amount => ({
  cpu_seconds: a.cpu_seconds + b.cpu_seconds, sent_bytes: a.sent_bytes + b.sent_bytes, received_bytes: a.received_bytes + b.received_bytes, runs: a.runs + b.runs,
  sandbox_seconds: a.sandbox_seconds + b.sandbox_seconds,
});

const seconds = (s: number) => (s ? duration(1000 * s) : "0 s");

// rows are the hours of an answer, or their days in UTC, the latest first.
function rows(u: ProjectUsage, by: "hours" | "days"): { begins: string; amount: Amount }[] {
  const of = new Map<string, Amount>();
  for (const h of u.hours) {
    const begins = by === "days" ? h.hour.slice(0, 10) : h.hour;
    of.set(begins, plus(of.get(begins) ?? none, h));
  }
  return [...of].map(([begins, amount]) => ({ begins, amount })).reverse();
}

// Usage shows what the project has used, and what is left of it today.
export function Usage() {
  const [range, setRange] = useState(0);
  const [told, setTold] = useState<{ range: number; usage: ProjectUsage } | null>(null); // of the range that was asked for
  const [today, setToday] = useState<Quotas["today"]>(undefined);
  const [error, setError] = useState("");
  const { ms, rows: by } = ranges[range]!;
  const usage = told?.range === range ? told.usage : null;
  useLive(async () => {
    const to = Date.now(), from = new Date(to - ms + hour); // with the hour that has begun
    try {
      const [u, q] = await Promise.all([get<ProjectUsage>(`/v1/usage?from=${from.toISOString()}&to=${new Date(to).toISOString()}`), get<Quotas>("/v1/quotas")]);
      setTold({ range, usage: u }); setToday(q.today); setError("");
    } catch (e) { setError(message(e)); }
  }, [range]);
  const left = (name: string, q: Quota, text: (n: number) => string) => q.most && <Tile name={name} value={text(q.used)} more={`of ${text(q.most)}`} part={q.used / q.most} />;
  return (
    <main class="page">
      <header class="row spread wrap">
        <h1>Usage</h1>
        <div class="row">
          <label for="range">Of the last</label>
          <select id="range" value={range} onChange={(e) => setRange(Number(e.currentTarget.value))}>{ranges.map((r, i) => <option key={r.name} value={i}>{r.name}</option>)}</select>
        </div>
      </header>
      {error && <Notice>{error}</Notice>}
      {usage && (
        <dl class="tiles">
          <Tile name="CPU time" value={seconds(usage.total.cpu_seconds)} />
          <Tile name="Sent" value={bytes(usage.total.sent_bytes)} />
          <Tile name="Received" value={bytes(usage.total.received_bytes)} />
          <Tile name="Programs" value={String(usage.total.runs)} />
          <Tile name="Time of sandboxes" value={seconds(usage.total.sandbox_seconds)} />
        </dl>
      )}
      {today && (today.cpu_ms.most || today.sent_bytes.most) && (
        <>
          <h2>Today, until <time dateTime={today.ends}>{new Date(today.ends).toLocaleTimeString([], { timeStyle: "short" })}</time></h2>
          <dl class="tiles">{left("CPU time today", today.cpu_ms, duration)}{left("Sent today", today.sent_bytes, bytes)}</dl>
        </>
      )}
      {usage && usage.hours.length === 0 && <Empty icon="chart" title="Nothing was used" />}
      {usage && usage.hours.length > 0 && (
        <section class="card table-card" aria-label={`By ${by}`}>
          <table class="stacked">
            <thead><tr>{[by === "hours" ? "Hour" : "Day (UTC)", ...columns].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
            <tbody>
              {rows(usage, by).map(({ begins, amount }) => (
                <tr key={begins}>
                  <td class="time"><time dateTime={begins}>{by === "hours" ? new Date(begins).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : begins}</time></td>
                  {[seconds(amount.cpu_seconds), bytes(amount.sent_bytes), bytes(amount.received_bytes), amount.runs, seconds(amount.sandbox_seconds)].map((text, i) => (
                    <td key={columns[i]}><span class="only-stacked note">{columns[i]} </span>{text}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </main>
  );
}
