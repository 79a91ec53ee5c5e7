// The private server of this process: a `llmsandbox serve` that only this user can connect to and that ends with the process.
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { lstatSync, mkdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { Endpoint } from "../endpoint.js"
import { ConnectError, StartError, printable, reason } from "../errors.js"
import { HTTPTransport } from "./http.js"
import type { Connected, Outgoing } from "./platform.js"

const MAX_READY = 4 << 10
const MAX_LOG = 4 << 10
const START_TIME = 60_000

const servers = new Map<string, Promise<Connected>>()

/** Returns the private server with some flags, which is started if it does not run. */
export function startPrivate(args: readonly string[]): Promise<Connected> {
  const key = JSON.stringify(args)
  let server = servers.get(key)
  if (server === undefined) {
    // The next call starts another.
    const forget = () => servers.get(key) === server && servers.delete(key)
    server = start(args, forget)
    servers.set(key, server)
    server.catch(forget)
  }
  return server
}

async function start(args: readonly string[], forget: () => void): Promise<Connected> {
  if (process.platform === "win32") throw new StartError("sandboxes need a Unix system: use a server with new Client({ url, apiKey })")
  const socket = join(directory(), `${process.pid}-${randomBytes(8).toString("hex")}.sock`)
  const own = ["--until-stdin-closes", "--listen", `unix:${socket}`, "--log", "error"]
  // Code has no network unless a request asks for it, and sandboxes end with this process.
  const defaults = ["--network", "full", "--ttl", "24h"]
  let child: ChildProcess
  try {
    // The server ends when its standard input does, which the system closes however this process ends. It has a session of its
    // own, so that Ctrl-C does not end the server of a program that goes on.
    child = spawn("llmsandbox", ["serve", ...own, ...defaults, ...args], { stdio: ["pipe", "pipe", "pipe"], detached: true })
  } catch (error) {
    throw notStarted(error)
  }
  child.on("exit", () => {
    forget()
    rmSync(socket, { force: true }) // which a server that was killed has left
  })
  child.stdin?.on("error", () => {}) // nothing is written to it
  await ready(child)
  // The server does not keep this process alive.
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as { unref?: () => void } | null)?.unref?.()
  const endpoint = new Endpoint("", socket, "", "", true)
  const transport = new HTTPTransport(endpoint)
  const send = async (request: Outgoing) => {
    try {
      return await transport.send(request)
    } catch (error) {
      if (error instanceof ConnectError) forget() // before the event tells that the server has ended
      throw error
    }
  }
  return { endpoint, transport: { send } }
}

/** Waits until the server serves, of which it prints a line. */
function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let line = ""
    let log = ""
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, START_TIME)
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (log = (log + text).slice(-MAX_LOG)))
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      line = (line + text).slice(0, MAX_READY)
      if (!line.includes("\n")) return
      clearTimeout(timer)
      resolve()
    })
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(notStarted(error))
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      const how = late ? `within ${START_TIME / 1000} seconds` : `(exit code ${code})`
      const said = printable(log) || "it printed nothing"
      const remedy = said.includes("--isolation process") ? '; in JavaScript, that is new Client({ isolation: "process" })' : ""
      reject(new StartError(`the private server did not start ${how}: ${said}${remedy}`))
    })
  })
}

/** Returns the directory for this user's sockets. Other users cannot enter it. */
function directory(): string {
  const user = process.getuid?.() ?? 0
  const path = join(process.env["XDG_RUNTIME_DIR"] || tmpdir(), `llmsandbox-${user}`)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw notStarted(error)
  }
  const made = lstatSync(path)
  if (!made.isDirectory() || made.uid !== user || (made.mode & 0o077) !== 0) {
    throw new StartError(`${path} is not a directory of this user that is closed to all others: remove it, or set XDG_RUNTIME_DIR`)
  }
  return path
}

function notStarted(error: unknown): StartError {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") {
    return new StartError(
      "the command llmsandbox is not on the PATH: put it there, or use a server with new Client({ url, apiKey })", { cause: error },
    )
  }
  return new StartError(`the private server did not start: ${reason(error)}`, { cause: error })
}
