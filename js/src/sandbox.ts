// Sandboxes.
import { type Client, defaultClient } from "./client.js"
import { type SandboxInfo, parseSandbox } from "./describe.js"
import { ClosedError, ConnectError, NotFoundError } from "./errors.js"
import { Files } from "./files.js"
import type { Schemas } from "./json.js"
import { Kernel } from "./kernel.js"
import { type Abortable, type ExecOptions, type ProgramOptions, type SandboxOptions, execBody, programBody, sandboxBody } from "./options.js"
import { type NetworkAccess, checkedID, given, networkBody, receivedID, texts } from "./request.js"
import { Result, type RunEvent } from "./results.js"
import type { Session } from "./session.js"

/** How a kernel is opened. */
export interface KernelOptions extends Abortable {
  readonly language?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  readonly libraries?: readonly string[] | undefined
  /** The language's own shell where there is a richer one, that is, Python without IPython. It opens sooner. */
  readonly plain?: boolean | undefined
}

/**
 * A sandbox, in which code runs. `Sandbox.create` opens it, and it is removed by `close` or at the end of `await using`. One that is never
 * closed ends with this process if the server is the process's own, and after its lifetime otherwise.
 */
export class Sandbox {
  /** By which `attach` finds the sandbox. */
  readonly id: string
  readonly files: Files
  readonly #session: Session
  readonly #owned: boolean // it is removed when it is closed here
  #closed = false

  private constructor(session: Session, id: string, owned: boolean) {
    this.#session = session.below(`/v1/sandboxes/${id}`)
    this.#owned = owned
    this.id = id
    this.files = new Files(() => this.#opened())
  }

  /** Opens a sandbox. */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const body = sandboxBody(options)
    const session = await (options.client ?? defaultClient()).session(options.signal)
    const request = { method: "POST", path: "/v1/sandboxes", body, success: 201, signal: options.signal } as const
    return new Sandbox(session, receivedID(await session.json<Schemas["Sandbox"]>(request)), true)
  }

  /** Finds a sandbox by its id. It lives on when it is closed here. Fails with NotFoundError if there is none. */
  static async attach(id: string, options: { readonly client?: Client | undefined } & Abortable = {}): Promise<Sandbox> {
    checkedID(id)
    const session = await (options.client ?? defaultClient()).session(options.signal)
    const sandbox = new Sandbox(session, id, false)
    await sandbox.info()
    return sandbox
  }

  /** Runs code and returns what became of it. Code that fails is not an error: look at the result's status. The signal ends the run. */
  async run(code: string, options: ProgramOptions = {}): Promise<Result> {
    return this.#opened().result({ method: "POST", path: "/run", body: programBody(code, options), signal: options.signal }, Result)
  }

  /**
   * Runs code and yields its output as it is written, and then an event "done" with the result. The run ends if the loop is left before.
   */
  async *stream(code: string, options: ProgramOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    yield* this.#opened().events({ method: "POST", path: "/run", body: programBody(code, options), signal: options.signal }, Result)
  }

  /** Runs a program of the sandbox: a line for its shell, or a program and its arguments. */
  async exec(command: string | readonly string[], options: ExecOptions = {}): Promise<Result> {
    return this.#opened().result({ method: "POST", path: "/exec", body: execBody(command, options), signal: options.signal }, Result)
  }

  /** Installs libraries of the sandbox's language, such as ["numpy>=2"]. Fails with InstallError. */
  async install(libraries: readonly string[], options: Abortable = {}): Promise<void> {
    const body: Schemas["NewLibraries"] = { libraries: texts("libraries", libraries) ?? [] }
    await this.#opened().empty({ method: "POST", path: "/libraries", body, signal: options.signal })
  }

  /** Opens a kernel: an interpreter that keeps its state between cells. */
  async kernel(options: KernelOptions = {}): Promise<Kernel> {
    const body = given<Schemas["NewKernel"]>({
      language: options.language,
      env: options.env,
      dir: options.cwd,
      libraries: texts("libraries", options.libraries),
      plain: options.plain,
    })
    const request = { method: "POST", path: "/kernels", body, success: 201, signal: options.signal } as const
    const made = await this.#opened().json<Schemas["Kernel"]>(request)
    return new Kernel(() => this.#opened(), receivedID(made), made.text("language"))
  }

  /** Describes the sandbox as it is now. */
  async info(): Promise<SandboxInfo> {
    return parseSandbox(await this.#opened().json<Schemas["Sandbox"]>({ method: "GET", path: "" }))
  }

  /** Has the sandbox end that many seconds from now. */
  async setLifetime(seconds: number): Promise<void> {
    await this.#opened().json({ method: "PATCH", path: "", body: { lifetime_seconds: seconds } })
  }

  /** Changes what the sandbox may reach. */
  async setNetwork(network: NetworkAccess): Promise<void> {
    await this.#opened().json({ method: "PATCH", path: "", body: { network: networkBody(network) } })
  }

  /** Stops all that runs in the sandbox until `resume`. */
  async pause(): Promise<void> {
    await this.#opened().empty({ method: "POST", path: "/pause" })
  }

  /** Lets a paused sandbox go on. */
  async resume(): Promise<void> {
    await this.#opened().empty({ method: "POST", path: "/resume" })
  }

  /** Makes the sandbox what it was at first. It must have been opened with `resettable`. */
  async reset(): Promise<void> {
    await this.#opened().empty({ method: "POST", path: "/reset" })
  }

  /** Removes the sandbox and all that is in it. One that was attached to lives on. */
  async close(): Promise<void> {
    if (!this.#closed && this.#owned) await this.destroy()
    this.#closed = true
  }

  /** Removes the sandbox, also if it was attached to. */
  async destroy(): Promise<void> {
    const session = this.#opened()
    this.#closed = true
    try {
      await session.empty({ method: "DELETE", path: "" })
    } catch (error) {
      // It has ended by itself, or with the private server.
      if (!(error instanceof NotFoundError || (error instanceof ConnectError && session.isPrivate))) throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #opened(): Session {
    if (this.#closed) throw new ClosedError("the sandbox is closed")
    return this.#session
  }
}
