// What became of code: results, cells and what they have produced. Everything in them comes from inside a sandbox and may be hostile.
import { malformed } from "./errors.js"
import { Members, type Schemas, decodeBase64 } from "./json.js"

/** What became of code, as the server has observed it. */
export type Status = Schemas["Result"]["status"]

const STATUSES : readonly Status[] = ["ok", "error", "timeout", "out_of_memory", "output_limit", "killed", "refused", "setup_failed", "lost"]

/** A number, a category or date, or nothing. */
export type ChartValue = number | string | null

/** One direction of a coordinate system. `scale` is "linear", "log", "category" or "date", or empty. */
export interface Axis {
  readonly label: string
  readonly scale: string
  readonly categories: readonly string[]
}

/** A line, set of bars, cloud of points, pie and so on. */
export interface Series {
  readonly type: string
  readonly label: string
  /** One value per point. A histogram's are the edges of its bins, a pie's its labels. */
  readonly x: readonly ChartValue[]
  readonly y: readonly ChartValue[]
  /** One value per point, or a heatmap's rows. */
  readonly z: readonly (ChartValue | readonly ChartValue[])[]
  /** The ends of error bars. */
  readonly low: readonly ChartValue[]
  readonly high: readonly ChartValue[]
}

/** One coordinate system of a chart. */
export interface Axes {
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly series: readonly Series[]
}

/** The data of a plot. If `truncated`, it has more points or series than are kept. */
export interface Chart {
  readonly title: string
  readonly axes: readonly Axes[]
  readonly truncated: boolean
}

/** Another form of an artifact, such as a table's data beside its HTML. */
export interface Form {
  readonly mime: string
  readonly data: Uint8Array<ArrayBuffer>
}

/** A plot, table, page or file that code has produced. */
export interface Artifact {
  readonly name: string
  readonly mime: string
  readonly data: Uint8Array<ArrayBuffer>
  /** What made it, such as "matplotlib" or "file". */
  readonly source: string
  readonly title: string
  readonly figure: number
  readonly width: number
  readonly height: number
  readonly dpi: number
  /** The data of a plot, if it is known. */
  readonly chart: Chart | null
  readonly also: readonly Form[]
}

/** What may help code that failed. Programs can invent hints: check a library before you install it. */
export interface Hint {
  readonly kind: string
  readonly subject: string
}

/** What the server's policy names in the code. */
export interface Finding {
  readonly rule: string
  readonly severity: string
  readonly reason: string
  readonly code: string
  readonly file: string
  readonly line: number
  readonly column: number
}

/** An attempt of code to reach a host. */
export interface NetworkAttempt {
  readonly host: string
  readonly port: number
  readonly allowed: boolean
  readonly protocol: string
  readonly refused: string
  readonly reason: string
}

// An artifact is with its data: this package asks for no references.
type Common = Pick<Schemas["Cell"], keyof Schemas["Cell"] & keyof Schemas["Result"]>

/** What a result and a cell have in common. */
abstract class Outcome {
  /** A result that is "lost" comes with LostError only. */
  readonly status: Status
  /** null if none was observed, for example after a signal. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  readonly signal: string
  /** Why there is no ordinary outcome. */
  readonly reason: string
  readonly stdoutTruncated: boolean
  readonly stderrTruncated: boolean
  /** In seconds. */
  readonly duration: number
  readonly artifacts: readonly Artifact[]
  readonly artifactsDropped: readonly string[]
  readonly network: readonly NetworkAttempt[]
  readonly findings: readonly Finding[]
  readonly hints: readonly Hint[]

  protected constructor(value: unknown) {
    const o = new Members<Common>(value)
    this.status = o.oneOf("status", STATUSES)
    this.exitCode = o.integerOrNull("exit_code")
    if (this.status === "ok" && this.exitCode) throw malformed("the status of a result does not fit its exit code")
    this.stdout = o.text("stdout")
    this.stderr = o.text("stderr")
    this.signal = o.text("signal")
    this.reason = o.text("reason")
    this.stdoutTruncated = o.flag("stdout_truncated")
    this.stderrTruncated = o.flag("stderr_truncated")
    this.duration = o.number("duration_ms") / 1000
    this.artifacts = o.list("artifacts").map(parseArtifact)
    this.artifactsDropped = o.texts("artifacts_dropped")
    this.network = o.values("network").map(parseAttempt)
    this.findings = o.list("findings").map(parseFinding)
    this.hints = o.list("hints").map((h) => ({ kind: h.text("kind"), subject: h.text("subject") }))
  }

  /** Whether the code ended by itself and without an error. */
  get ok(): boolean {
    return this.status === "ok"
  }

  /** The artifacts that are pictures or charts. */
  get plots(): Artifact[] {
    return this.artifacts.filter((a) => a.mime.startsWith("image/") || a.chart !== null)
  }

  /** The data of the plots, as far as it is known. */
  get charts(): Chart[] {
    return this.artifacts.flatMap((a) => a.chart ?? [])
  }

  /** The artifacts that the code wrote to the directory "artifacts". */
  get files(): Artifact[] {
    return this.artifacts.filter((a) => a.source === "file")
  }
}

/** What became of a program. */
export class Result extends Outcome {
  /** In seconds. */
  readonly cpuTime: number
  /** In bytes; 0 where it is not known. */
  readonly peakMemory: number
  readonly sandboxID: string
  readonly backend: string
  readonly language: string
  /** The controls that the server does not enforce. */
  readonly notEnforced: readonly string[]

  /** @internal */
  constructor(value: unknown) {
    super(value)
    const o = new Members<Schemas["Result"]>(value)
    this.cpuTime = o.number("cpu_ms") / 1000
    this.peakMemory = o.integer("peak_memory_bytes")
    this.sandboxID = o.text("sandbox_id")
    this.backend = o.text("backend")
    this.language = o.text("language")
    this.notEnforced = o.texts("not_enforced")
  }
}

/** The exception that ended a cell. */
export interface CellError {
  readonly name: string
  readonly message: string
  readonly traceback: string
}

/** What became of a cell of a kernel. */
export class Cell extends Outcome {
  /** Its number in the kernel's process, from 1. */
  readonly count: number
  /** That of the last expression by media type, "text/plain" among them. Types that are not text are in base64. */
  readonly value: Readonly<Record<string, string>>
  readonly error: CellError | null
  readonly interrupted: boolean
  /** What cells have defined is gone. */
  readonly stateLost: boolean
  /** The kernel's process had ended before this cell. */
  readonly restarted: boolean

  /** @internal */
  constructor(value: unknown) {
    super(value)
    const o = new Members<Schemas["Cell"]>(value)
    const error = o.object("error")
    this.count = o.integer("count")
    this.value = o.textMap("value")
    this.error = error && { name: error.text("name"), message: error.text("message"), traceback: error.text("traceback") }
    this.interrupted = o.flag("interrupted")
    this.stateLost = o.flag("state_lost")
    this.restarted = o.flag("restarted")
  }

  /** The value of the last expression as plain text; null if there is none. */
  get text(): string | null {
    return this.value["text/plain"] ?? null
  }
}

/** Output of code that runs, or its end, which is the last event. */
export type RunEvent<R extends Result | Cell = Result> =
  | { readonly kind: "stdout" | "stderr"; readonly text: string }
  | { readonly kind: "done"; readonly result: R }

function parseArtifact(o: Members<Schemas["Artifact"]>): Artifact {
  const chart = o.object("chart")
  return {
    name: o.text("name"),
    mime: o.text("mime"),
    data: decodeBase64(o.text("data")),
    source: o.text("source"),
    title: o.text("title"),
    figure: o.integer("figure"),
    width: o.integer("width"),
    height: o.integer("height"),
    dpi: o.number("dpi"),
    chart: chart && parseChart(chart),
    also: o.list("also").map((f) => ({ mime: f.text("mime"), data: decodeBase64(f.text("data")) })),
  }
}

function parseChart(o: Members<Schemas["Chart"]>): Chart {
  return { title: o.text("title"), axes: o.list("axes").map(parseAxes), truncated: o.flag("truncated") }
}

function parseAxes(o: Members<Schemas["Axes"]>): Axes {
  return { title: o.text("title"), x: parseAxis(o.object("x")), y: parseAxis(o.object("y")), series: o.list("series").map(parseSeries) }
}

function parseAxis(o: Members<Schemas["Axis"]> | null): Axis {
  return { label: o?.text("label") ?? "", scale: o?.text("scale") ?? "", categories: o?.texts("categories") ?? [] }
}

function parseSeries(o: Members<Schemas["Series"]>): Series {
  const points = (name: "x" | "y" | "low" | "high") => o.values(name).map(chartValue)
  return {
    type: o.text("type"),
    label: o.text("label"),
    x: points("x"),
    y: points("y"),
    z: o.values("z").map((value) => (Array.isArray(value) ? value.map(chartValue) : chartValue(value))),
    low: points("low"),
    high: points("high"),
  }
}

function chartValue(value: unknown): ChartValue {
  if (value === null || typeof value === "string" || Number.isFinite(value)) return value as ChartValue
  throw malformed("a point of a chart is neither a number nor a text")
}

// The description of the API says nothing about the members of an attempt.
interface Attempt {
  name: string
  port: number
  allowed: boolean
  protocol?: string
  refused?: string
  reason?: string
}

function parseAttempt(value: unknown): NetworkAttempt {
  const o = new Members<Attempt>(value)
  return {
    host: o.text("name"),
    port: o.integer("port"),
    allowed: o.flag("allowed"),
    protocol: o.text("protocol"),
    refused: o.text("refused"),
    reason: o.text("reason"),
  }
}

function parseFinding(o: Members<Schemas["Finding"]>): Finding {
  return {
    rule: o.text("rule"),
    severity: o.text("severity"),
    reason: o.text("reason"),
    code: o.text("code"),
    file: o.text("file"),
    line: o.integer("line"),
    column: o.integer("column"),
  }
}
