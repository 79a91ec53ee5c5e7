// Servers and programs for the tests: the command is that of LLMSANDBOX_TEST_COMMANDS, or of bin/test, which `make commands` builds.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import process from "node:process"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Client } from "llmsandbox"

/** The directory of the package. */
export const PACKAGE = fileURLToPath(new URL("..", import.meta.url))
const COMMANDS = process.env["LLMSANDBOX_TEST_COMMANDS"] || join(PACKAGE, "..", "bin", "test")
process.env["PATH"] = COMMANDS + delimiter + process.env["PATH"]
for (const name of ["LLMSANDBOX_URL", "LLMSANDBOX_API_KEY", "LLMSANDBOX_ISOLATION"]) delete process.env[name]

/** A server on a port of the loopback, which needs a key. It ends with the tests at the latest. */
export class Server {
  private constructor(
    readonly process: ChildProcess,
    readonly url: string,
    readonly key: string,
  ) {}

  static async start(...args: string[]): Promise<Server> {
    const all = ["serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--log", "error", ...args]
    const child = spawn("llmsandbox", all, { stdio: ["pipe", "pipe", "inherit"] })
    child.on("exit", () => child.stdout.destroy()) // without a line, the standard error says why
    const [line] = (await once(child.stdout, "data")) as [Buffer]
    const { url, key } = JSON.parse(line.toString()) as { url: string; key: string }
    return new Server(child, url, key)
  }

  client(): Client {
    return new Client({ url: this.url, apiKey: this.key })
  }

  async close(): Promise<void> {
    this.process.stdin?.end()
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit")
  }
}

/** What a program has printed, and its end. */
export interface Done {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** Runs a program and returns what it has printed. It is killed after two minutes. */
export async function execute(command: string, args: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}): Promise<Done> {
  const { cwd, env } = options
  const child = spawn(command, args, { ...(cwd && { cwd }), env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
  const [code] = (await once(child, "close")) as [number | null]
  return { stdout, stderr, code }
}

const made: string[] = []
process.on("exit", () => made.forEach((directory) => rmSync(directory, { recursive: true, force: true })))

/** Returns a new directory, which is removed when the tests end. */
export function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "llmsandbox-js-"))
  made.push(directory)
  return directory
}

/** Writes a program that imports this package, and returns its path. */
export function programFile(code: string): string {
  const path = join(temporary(), "program.mjs")
  writeFileSync(path, code.replace('"llmsandbox"', JSON.stringify(join(PACKAGE, "dist", "index.js"))))
  return path
}

/** Runs a program that imports this package with Node. */
export function program(code: string, env: Record<string, string> = {}): Promise<Done> {
  return execute(process.execPath, [programFile(code)], { env })
}

/** Has a program be able to tell its children, which are its private servers. */
export const CHILDREN = `
import { readFileSync, readdirSync } from "node:fs"
const ofThread = (thread) => readFileSync("/proc/self/task/" + thread + "/children", "utf8").split(" ").filter(Boolean)
const children = () => readdirSync("/proc/self/task").flatMap(ofThread)
`

/** Waits until a process that is not our child has ended, or is only waited for. */
export async function ends(pid: number): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(10)) {
    try {
      if (/\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1"))) return
    } catch {
      return
    }
  }
  throw new Error(`process ${pid} still runs`)
}
