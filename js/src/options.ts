// Options of runs and sandboxes, and the bodies of requests that they make.
import type { Client } from "./client.js"
import { type Schemas, encodeBase64 } from "./json.js"
import { type NetworkAccess, given, networkBody, size, texts } from "./request.js"

/** What all that takes long can have: a signal that ends it. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** How code is run. */
export interface ProgramOptions extends Abortable {
  /** What the code is written in, such as "python", "javascript", "r" or "bash". */
  readonly language?: string | undefined
  /** In seconds. */
  readonly timeout?: number | undefined
  readonly args?: readonly string[] | undefined
  readonly stdin?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Other files of the program, by their relative path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>> | undefined
  /** What to install first, as the language's registry names it. */
  readonly libraries?: readonly string[] | undefined
  /** The working directory, relative to the sandbox's. */
  readonly cwd?: string | undefined
}

/** What a sandbox is made of, and its limits. Sizes are numbers of bytes or texts such as "512m"; times are in seconds. */
interface PlaceOptions {
  /** "none" (the default), "full" for all public hosts, or a list of hosts such as ["pypi.org", "*.example.org:443"]. */
  readonly network?: NetworkAccess | undefined
  readonly memory?: number | string | undefined
  readonly cpus?: number | undefined
  readonly pids?: number | undefined
  readonly disk?: number | string | undefined
  readonly image?: string | undefined
  readonly environment?: string | undefined
  /** The server to use; the default is that of `new Client()`. */
  readonly client?: Client | undefined
}

/** How code is run in a sandbox of its own. */
export interface RunOptions extends Omit<ProgramOptions, "cwd">, PlaceOptions {}

/** A value that never enters the sandbox, which needs a network that reaches the hosts. */
export interface Secret {
  /** The environment variable that has a placeholder in the sandbox. */
  readonly name: string
  /** What takes its place in headers and queries of requests to the hosts. */
  readonly value: string
  readonly hosts: readonly string[]
  /** In bodies of requests, too. */
  readonly body?: boolean | undefined
}

/** A sandbox. What is left out is as the server has it; requests can ask for less than its limits, but not for more. */
export interface SandboxOptions extends PlaceOptions, Abortable {
  /** What code is written in, such as "python" (the default), "javascript", "r" or "bash". */
  readonly language?: string | undefined
  /** What to install first, as the language's registry names it. */
  readonly libraries?: readonly string[] | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly secrets?: readonly Secret[] | undefined
  /** Of each run, in seconds. */
  readonly timeout?: number | undefined
  /** Of each run, in bytes. */
  readonly output?: number | string | undefined
  /** When the sandbox ends, whatever runs in it. */
  readonly lifetime?: number | undefined
  /** How long after its last use the sandbox ends. */
  readonly idleTimeout?: number | undefined
  /** Names and values that are kept with the sandbox, for `Client.list`. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly template?: string | undefined
  /** Modules that Python has imported before anything runs. */
  readonly imports?: readonly string[] | undefined
  readonly workdir?: string | undefined
  readonly user?: string | undefined
  readonly sudo?: boolean | undefined
  readonly writableRoot?: boolean | undefined
  /** Lets `reset` be called. */
  readonly resettable?: boolean | undefined
  /** Takes a sandbox for which a limit cannot be enforced. */
  readonly bestEffort?: boolean | undefined
}

/** How a program of the sandbox is run. */
export interface ExecOptions extends Abortable {
  /** In seconds. */
  readonly timeout?: number | undefined
  readonly stdin?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
}

export function programBody(code: string, options: ProgramOptions): Schemas["Program"] {
  return given<Schemas["Program"]>({
    code,
    language: options.language,
    timeout_seconds: options.timeout,
    args: texts("args", options.args),
    stdin: options.stdin,
    env: options.env,
    files: options.files && fileBodies(options.files),
    libraries: texts("libraries", options.libraries),
    dir: options.cwd,
  })
}

export function runBody(code: string, options: RunOptions): Schemas["OneShot"] {
  return given<Schemas["OneShot"]>({
    ...programBody(code, options),
    network: networkBody(options.network),
    limits: limits(options),
    image: options.image,
    environment: options.environment,
  })
}

export function sandboxBody(options: SandboxOptions): Schemas["NewSandbox"] {
  return given<Schemas["NewSandbox"]>({
    language: options.language,
    network: networkBody(options.network),
    libraries: texts("libraries", options.libraries),
    env: options.env,
    secrets: options.secrets?.map(({ name, value, hosts, body }) => ({ name, value, hosts: texts("hosts", hosts) ?? [], body: body ?? false })),
    limits: given<Schemas["RunLimits"]>({
      ...limits(options),
      timeout_seconds: options.timeout,
      output_bytes: size(options.output),
    }),
    lifetime_seconds: options.lifetime,
    idle_timeout_seconds: options.idleTimeout,
    labels: options.labels,
    template: options.template,
    environment: options.environment,
    image: options.image,
    imports: texts("imports", options.imports),
    workdir: options.workdir,
    user: options.user,
    sudo: options.sudo,
    writable_root: options.writableRoot,
    resettable: options.resettable,
    best_effort: options.bestEffort,
  })
}

export function execBody(command: string | readonly string[], options: ExecOptions): Schemas["Command"] {
  return {
    ...(typeof command === "string" ? { shell: command } : { argv: [...command] }),
    ...given<Schemas["Command"]>({ timeout_seconds: options.timeout, stdin: options.stdin, env: options.env, dir: options.cwd }),
  }
}

function limits(options: PlaceOptions): Schemas["SandboxLimits"] {
  return given<Schemas["SandboxLimits"]>({
    memory_bytes: size(options.memory),
    cpus: options.cpus,
    pids: options.pids,
    disk_bytes: size(options.disk),
  })
}

function fileBodies(files: Readonly<Record<string, string | Uint8Array>>): NonNullable<Schemas["Program"]["files"]> {
  const bodies = Object.entries(files).map(([name, content]) => [name, typeof content === "string" ? content : { base64: encodeBase64(content) }])
  return Object.fromEntries(bodies)
}
