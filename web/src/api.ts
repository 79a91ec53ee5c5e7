// Requests of the API. The browser's session authenticates them: no key is ever in the page.

export interface Problem { status: number; code: string; detail: string; fields?: { location: string; message: string }[] }

// A Failure is a request that failed, with what a person can be told.
export class Failure extends Error {
  constructor(readonly status: number, readonly code: string, message: string) { super(message); }
}

let onSignedOut = () => {};

// whenSignedOut sets what is done when the server says that there is no session any more.
export function whenSignedOut(f: () => void) { onSignedOut = f; }

async function failure(res: Response): Promise<Failure> {
  let detail = `The server answered ${res.status}.`, code = "";
  try {
    const p = (await res.json()) as Problem;
    if (p.detail) detail = p.detail;
    code = p.code ?? "";
    if (p.fields?.length) detail += ": " + p.fields.map((f) => `${f.location}: ${f.message}`).join("; ");
  } catch { /* it was no problem of this API; its status says enough */ }
  return new Failure(res.status, code, detail);
}

export async function request(method: string, path: string, init: RequestInit & { quiet?: boolean } = {}): Promise<Response> {
  let res: Response;
  try {
    res = await fetch(path, { method, credentials: "same-origin", redirect: "error", ...init });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Failure(0, "unreachable", "The server does not answer. Is it still running?");
  }
  if (res.ok) return res;
  if (res.status === 401 && !init.quiet) onSignedOut();
  throw await failure(res);
}

export async function get<T>(path: string): Promise<T> { return (await request("GET", path)).json() as Promise<T>; }

export function json(body: unknown): RequestInit {
  return { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const res = await request("POST", path, json(body));
  return (res.status === 204 ? undefined : await res.json()) as T;
}

export interface Who {
  key_id: string; key_name: string; project: string; read: boolean; write: boolean; audit: boolean; admin: boolean; expires?: string; version: string; ends?: string;
  ports: boolean; // they have origins of their own, and can be shared
}
export interface AuditEntry { time: string; key_id?: string; key_name?: string; operation: string; sandbox?: string; outcome: string; detail?: string }
export interface Key { id: string; name: string; scopes: string[]; created: string; expires?: string; revoked?: string }
export interface Quota { used: number; most?: number }
export interface Quotas { sandboxes: Quota; memory_bytes: Quota; disk_bytes: Quota; volumes?: Quota; today?: { cpu_ms: Quota; sent_bytes: Quota; ends: string }; requests_per_second?: number }
export interface Amount { cpu_seconds: number; sent_bytes: number; received_bytes: number; runs: number; sandbox_seconds: number }
export interface ProjectUsage { hours: ({ hour: string } & Amount)[]; total: Amount }
export interface Language { name: string; title: string; extensions?: string[] }
export interface Axes { title?: string; x: { label?: string; categories?: string[] }; y: { label?: string }; series: { type: string; label?: string; x?: unknown[]; y?: unknown[]; z?: unknown[] }[] }
export interface Artifact {
  name: string; mime: string; data: string; source?: string; title?: string; width?: number; height?: number;
  chart?: { title?: string; axes: Axes[]; truncated?: boolean }; also?: { mime: string; data: string }[];
}
export interface Attempt { name: string; address?: string; port: number; protocol?: string; allowed: boolean; refused?: string; reason?: string; sent_bytes: number; received_bytes: number }
export interface Result {
  status: string; exit_code?: number; signal?: string; reason?: string; stdout: string; stderr: string; stdout_truncated: boolean; stderr_truncated: boolean;
  duration_ms: number; cpu_ms?: number; peak_memory_bytes?: number; artifacts: Artifact[]; artifacts_dropped?: string[]; network?: Attempt[];
  hints?: { kind: string; subject?: string }[]; findings?: { rule: string; severity: string; line?: number; reason: string }[]; not_enforced?: string[];
  value?: Record<string, string>; error?: { name: string; message: string; traceback?: string }; count?: number; interrupted?: boolean; restarted?: boolean; state_lost?: boolean;
}
export interface Sandbox {
  id: string; language: string; image?: string; backend: string; created: string; deadline?: string; paused?: boolean; labels?: Record<string, string>;
  limits: { memory_bytes?: number; cpus?: number; pids?: number; disk_bytes?: number };
}
export interface FileEntry { name: string; type: string; size_bytes: number; mode: string; modified: string; link?: string }
export interface Kernel { id: string; language: string; version?: string; flavor?: string }

// LOST is the result of a run whose stream was cut off: what became of the program is not known.
const lost = (reason: string): Result => ({ status: "lost", reason, stdout: "", stderr: "", stdout_truncated: false, stderr_truncated: false, duration_ms: 0, artifacts: [] });

// An Event is a Server-Sent Event.
export interface Event { name: string; data: string }

// events are those of an answer, until it ends or its connection does.
export async function* events(res: Response): AsyncGenerator<Event, void> {
  const reader = res.body!.pipeThrough(new TextDecoderStream()).getReader();
  let pieces: string[] = [];
  for (;;) {
    let piece: ReadableStreamReadResult<string>;
    try {
      piece = await reader.read();
    } catch (e) {
      if ((e as Error).name === "AbortError") throw e;
      return;
    }
    if (piece.done) return;
    pieces.push(piece.value);
    if (!piece.value.includes("\n\n") && !(piece.value.startsWith("\n") && pieces.length > 1)) continue; // an event may be long: it is put together once
    const whole = pieces.join("").split("\n\n");
    pieces = [whole.pop()!];
    for (const event of whole) {
      let name = "", data = "";
      for (const line of event.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (name === "problem") { const p = JSON.parse(data) as Problem; throw new Failure(p.status, p.code, p.detail); }
      if (name) yield { name, data };
    }
  }
}

// run sends code to be run and calls output with what it writes, as it does. It returns what the server says became of it, and "lost" where the
// connection ended before it said so.
export async function run(path: string, body: unknown, output: (stream: string, text: string) => void, signal: AbortSignal): Promise<Result> {
  const init = json(body);
  const res = await request("POST", path, { ...init, headers: { ...init.headers, Accept: "text/event-stream" }, signal });
  for await (const { name, data } of events(res)) {
    if (name === "stdout" || name === "stderr") output(name, JSON.parse(data) as string);
    if (name === "result") return JSON.parse(data) as Result;
  }
  return lost("The connection ended before the program did.");
}
