// The client of a server, and what runs without a sandbox that stays.
import platform from "#platform"
import { type SandboxInfo, parseSandbox } from "./describe.js"
import { parseEndpoint } from "./endpoint.js"
import { InvalidError, malformed } from "./errors.js"
import type { Schemas } from "./json.js"
import { type Abortable, type RunOptions, runBody } from "./options.js"
import type { Connected } from "./platform/platform.js"
import { texts } from "./request.js"
import { Result } from "./results.js"
import { Session, untilAborted } from "./session.js"

const MAX_PAGES = 100

/** Which server is used, and how. */
export interface ClientOptions {
  /** The address, such as https://sandboxes.example.org or unix:/run/llmsandbox.sock. The default is LLMSANDBOX_URL. */
  readonly url?: string | undefined
  /** The default is LLMSANDBOX_API_KEY. */
  readonly apiKey?: string | undefined
  /**
   * "process" has a private server use the weaker isolation that any container allows, where the `notEnforced` of results names the
   * limits that are not enforced. The default is LLMSANDBOX_ISOLATION.
   */
  readonly isolation?: string | undefined
  /** Further flags of `llmsandbox serve` for a private server, such as ["--memory", "2g"]. */
  readonly serverArgs?: readonly string[] | undefined
}

/**
 * Uses one server with one API key.
 *
 * Without a URL, that is the private server of this process, which the first call starts, and which ends with the process.
 */
export class Client {
  readonly #args: readonly string[]
  readonly #server: Connected | null // null: the private one

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? variable("LLMSANDBOX_URL")
    const { apiKey, isolation } = options
    const serverArgs = texts("serverArgs", options.serverArgs) ?? []
    if (url !== undefined && (isolation !== undefined || serverArgs.length > 0)) {
      throw new InvalidError("isolation and serverArgs are for a private server: leave them out where a URL is set")
    }
    if (url === undefined && apiKey !== undefined) throw new InvalidError("apiKey needs the URL of a server: set url or LLMSANDBOX_URL")
    this.#args = privateArgs(isolation ?? variable("LLMSANDBOX_ISOLATION"), serverArgs)
    this.#server = null
    if (url !== undefined) {
      const endpoint = parseEndpoint(url, apiKey ?? variable("LLMSANDBOX_API_KEY") ?? "")
      this.#server = { endpoint, transport: platform.connect(endpoint) }
    }
  }

  /** The address of the server; null for a private one. */
  get url(): string | null {
    return this.#server && this.#server.endpoint.toString()
  }

  /** Returns the sandboxes of the API key's project that have all of the labels. */
  async list(options: { readonly labels?: Readonly<Record<string, string>> | undefined } & Abortable = {}): Promise<SandboxInfo[]> {
    const { labels = {}, signal } = options
    const label = Object.entries(labels).map(([name, value]) => {
      if (name.includes("=")) throw new InvalidError(`the name of a label ${JSON.stringify(name)} has a "=", which the server cannot be asked for`)
      return `${name}=${value}`
    })
    const session = await this.session(signal)
    const found: SandboxInfo[] = []
    let after = ""
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const query = { limit: "1000", label, ...(after && { after }) }
      const page = await session.json<Schemas["Sandboxes"]>({ method: "GET", path: "/v1/sandboxes", query, signal })
      found.push(...page.list("sandboxes").map(parseSandbox))
      after = page.text("next")
      if (!after) return found
    }
    throw malformed(`the list of sandboxes does not end after ${MAX_PAGES} pages`)
  }

  /** @internal */
  async session(signal?: AbortSignal): Promise<Session> {
    return new Session(this.#server ?? (await untilAborted(platform.startPrivate(this.#args), signal)))
  }
}

let ofProcess: Client | undefined

/** Returns the client of what is given none. */
export function defaultClient(): Client {
  return (ofProcess ??= new Client())
}

/** Runs code in a sandbox of its own, which is removed afterwards. Code that fails is not an error: look at the result's status. */
export async function run(code: string, options: RunOptions = {}): Promise<Result> {
  const body = runBody(code, options)
  const session = await (options.client ?? defaultClient()).session(options.signal)
  return session.result({ method: "POST", path: "/v1/run", body, signal: options.signal }, Result)
}

/** Returns the flags of a private server. */
function privateArgs(isolation: string | undefined, args: readonly string[]): string[] {
  if (isolation === undefined) return [...args]
  // The isolation process cannot enforce the limits that serve sets by default.
  return ["--isolation", isolation, ...(isolation === "process" ? ["--best-effort"] : []), ...args]
}

/** Returns an environment variable, where there are such. */
function variable(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined
}
