// Interpreters that keep their state.
import { ClosedError, NotFoundError } from "./errors.js"
import type { Schemas } from "./json.js"
import type { Abortable } from "./options.js"
import { given, texts } from "./request.js"
import { Cell, type RunEvent } from "./results.js"
import type { Session } from "./session.js"

/** How a cell is run. */
export interface CellOptions extends Abortable {
  /** In seconds. */
  readonly timeout?: number | undefined
  /** Lines that answer the code's requests for input. */
  readonly stdin?: readonly string[] | undefined
}

/** A variable of a kernel. `value` is the beginning of its representation. */
export interface Variable {
  readonly name: string
  readonly type: string
  readonly value: string
}

/** What could stand in a place of code: `matches` may take the place of `code.slice(start, end)`. */
export interface Completion {
  readonly matches: readonly string[]
  readonly start: number
  readonly end: number
}

/**
 * An interpreter that keeps its state between cells. `Sandbox.kernel` opens it; cells queue. It lives until it is closed, or as long as
 * its sandbox.
 */
export class Kernel {
  readonly id: string
  readonly language: string
  readonly #sandbox: () => Session
  #closed = false

  /** @internal */
  constructor(sandbox: () => Session, id: string, language: string) {
    this.#sandbox = sandbox
    this.id = id
    this.language = language
  }

  /** Runs a cell and returns what became of it. Code that fails is not an error. The signal interrupts the cell. */
  async run(code: string, options: CellOptions = {}): Promise<Cell> {
    return this.#session().result({ method: "POST", path: "/cells", body: cellBody(code, options), signal: options.signal }, Cell)
  }

  /**
   * Runs a cell and yields its output as it is written, and then an event "done" with the cell. The cell is interrupted if the loop is
   * left before.
   */
  async *stream(code: string, options: CellOptions = {}): AsyncGenerator<RunEvent<Cell>, void, undefined> {
    yield* this.#session().events({ method: "POST", path: "/cells", body: cellBody(code, options), signal: options.signal }, Cell)
  }

  /** Interrupts the cell that runs. */
  async interrupt(): Promise<void> {
    await this.#session().empty({ method: "POST", path: "/interrupt" })
  }

  /** Starts the interpreter anew. What it has defined is gone. */
  async restart(): Promise<void> {
    await this.#session().empty({ method: "POST", path: "/restart" })
  }

  /** Forgets what cells have defined, in the same process. */
  async reset(): Promise<void> {
    await this.#session().empty({ method: "POST", path: "/reset" })
  }

  /** Completes code at a cursor, which is the code's end by default. */
  async complete(code: string, cursor = code.length): Promise<Completion> {
    const body = placeBody(code, cursor)
    const o = await this.#session().json<Schemas["Completion"]>({ method: "POST", path: "/complete", body })
    return { matches: o.texts("matches"), start: index(code, o.integer("start")), end: index(code, o.integer("end")) }
  }

  /** Returns documentation, signature or value of what stands at a cursor; empty where nothing is known. */
  async inspect(code: string, cursor = code.length): Promise<string> {
    const body = placeBody(code, cursor)
    return (await this.#session().json<Schemas["Inspection"]>({ method: "POST", path: "/inspect", body })).text("text")
  }

  /** Returns the variables that cells have defined. */
  async variables(): Promise<Variable[]> {
    const found = await this.#session().json<Schemas["Variables"]>({ method: "GET", path: "/variables" })
    return found.list("variables").map((v) => ({ name: v.text("name"), type: v.text("type"), value: v.text("value") }))
  }

  /** Ends the interpreter. What it has defined is gone. */
  async close(): Promise<void> {
    if (this.#closed) return
    try {
      await this.#session().empty({ method: "DELETE", path: "" })
    } catch (error) {
      // It has ended with its sandbox, or by itself.
      if (!(error instanceof NotFoundError || error instanceof ClosedError)) throw error
    } finally {
      this.#closed = true
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #session(): Session {
    if (this.#closed) throw new ClosedError("the kernel is closed")
    return this.#sandbox().below(`/kernels/${this.id}`)
  }
}

function cellBody(code: string, options: CellOptions): Schemas["NewCell"] {
  return given<Schemas["NewCell"]>({ code, timeout_seconds: options.timeout, stdin: texts("stdin", options.stdin) })
}

/** The API counts code points, and JavaScript counts the units of UTF-16. */
function placeBody(code: string, cursor: number): Schemas["Place"] {
  return { code, cursor: [...code.slice(0, cursor)].length }
}

/** Returns the index of a code point. */
function index(code: string, point: number): number {
  return [...code].slice(0, point).join("").length
}
