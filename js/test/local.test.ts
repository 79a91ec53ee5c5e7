// The private server of a process: where it runs, and that it ends with the process.
import assert from "node:assert/strict"
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { it } from "node:test"
import { CHILDREN, Server, ends, execute, program, programFile, temporary } from "./servers.js"

const FIRST = 'import { Client, Sandbox, run } from "llmsandbox"\n'
const SHOW = FIRST + CHILDREN

/** Returns the processes with an argument. */
function processes(marker: string): number[] {
  return readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0").includes(marker)
    } catch {
      return false // it has ended meanwhile
    }
  }).map(Number)
}

function start(code: string): ChildProcess & { stdout: NodeJS.ReadableStream } {
  return spawn(process.execPath, [programFile(code)], { stdio: ["ignore", "pipe", "inherit"] })
}

it("the first lines", async () => {
  const done = await program(`${FIRST}console.log((await run("print(6 * 7)")).stdout)`)
  assert.deepEqual(done, { stdout: "42\n\n", stderr: "", code: 0 })
})

it("one server, which ends with a program that leaves all open", async () => {
  const done = await program(`${SHOW}
const sandbox = await Sandbox.create()
await sandbox.kernel()
await Promise.all([run("1"), run("2")])
const events = sandbox.stream("import time; print('begun', flush=True); time.sleep(1000)")
await events.next()
console.log(children().join(" "))
process.exit()
`)
  assert.deepEqual([done.stderr, done.code], ["", 0])
  assert.match(done.stdout, /^[0-9]+\n$/)
  await ends(Number(done.stdout))
})

it("the server does not keep a program alive that leaves a sandbox open", async () => {
  const done = await program(`${SHOW}
const sandbox = await Sandbox.create()
await sandbox.run("1")
console.log(children()[0])
`)
  assert.deepEqual([done.stderr, done.code], ["", 0])
  await ends(Number(done.stdout))
})

it("an error that nobody handles ends the server, too", async () => {
  const done = await program(`${SHOW}await Sandbox.create(); console.log(children()[0]); throw new TypeError("of the program")`)
  assert.match(done.stderr, /TypeError: of the program/)
  await ends(Number(done.stdout))
})

for (const signal of ["SIGKILL", "SIGTERM", "SIGINT"] as const) {
  it(`${signal} of the process ends the server and what runs in it`, async () => {
    const marker = `marker-${randomUUID()}`
    const child = start(`${SHOW}
const sandbox = await Sandbox.create()
for await (const event of sandbox.stream("print('begun', flush=True)\\nwhile True: pass", { args: ["${marker}"] })) console.log(children()[0])
`)
    const [line] = (await once(child.stdout, "data")) as [Buffer]
    const [inside] = processes(marker)
    assert.ok(inside)
    child.kill(signal)
    await ends(Number(line))
    await ends(inside)
  })
}

it("a program's own children do not keep the server", async () => {
  const child = start(`${SHOW}
import { spawn } from "node:child_process"
await run("1")
const server = children()[0]
const other = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" })
console.log(server, other.pid)
process.kill(process.pid, "SIGKILL")
`)
  const [line] = (await once(child.stdout, "data")) as [Buffer]
  const [server, other] = line.toString().split(" ").map(Number)
  assert.ok(server && other)
  try {
    await ends(server)
  } finally {
    process.kill(other)
  }
})

it("Ctrl-C in a terminal leaves the server to a program that goes on", async () => {
  const path = programFile(`${SHOW}
const stop = new AbortController()
process.on("SIGINT", () => stop.abort())
const sandbox = await Sandbox.create()
try {
  for await (const event of sandbox.stream("open('f', 'w').write('kept')\\nprint('begun', flush=True)\\nwhile True: pass", { signal: stop.signal })) {
    if (event.kind === "stdout") process.kill(0, "SIGINT") // as a terminal does: to all of the process group
  }
} catch (error) {
  console.log(error.name, await sandbox.files.readText("f"))
}
await sandbox.close()
process.exit()
`)
  const done = await execute("setsid", ["--wait", process.execPath, path])
  assert.deepEqual([done.stdout, done.stderr], ["AbortError kept\n", ""])
})

it("a worker has a server of its own, which ends with it", async () => {
  const done = await program(`${SHOW}
import { Worker, isMainThread, parentPort } from "node:worker_threads"
import { once } from "node:events"
const before = await run("print(1)")
if (isMainThread) {
  const own = children()[0]
  const worker = new Worker(new URL(import.meta.url))
  const [text] = await once(worker, "message")
  const other = children().find((pid) => pid !== own)
  await worker.terminate()
  console.log(text, own, other)
} else {
  parentPort.postMessage(before.stdout.trim())
}
`)
  assert.deepEqual([done.stderr, done.code], ["", 0])
  const [text, own, other] = done.stdout.trim().split(" ").map(Number)
  assert.equal(text, 1)
  assert.ok(own && other)
  await ends(other)
  await ends(own)
})

it("a server that was killed", async () => {
  const done = await program(`${SHOW}
import { once } from "node:events"
const sandbox = await Sandbox.create()
await sandbox.run("1")
process.kill(Number(children()[0]), "SIGKILL")
for (let tries = 0; tries < 2; tries++) {
  try {
    while (true) await sandbox.run("1")
  } catch (error) {
    console.log(error.name, error.message)
  }
}
await sandbox.close()
console.log((await run("print(1)")).stdout)
`)
  assert.deepEqual([done.stderr, done.code], ["", 0])
  const [first, second, text] = done.stdout.split("\n")
  assert.match(first ?? "", /^(LostError|ConnectError) .*private server of this process/)
  assert.match(second ?? "", /^ConnectError the private server of this process has ended/)
  assert.equal(text, "1")
})

it("flags, network and isolation", async () => {
  const done = await program(`${FIRST}
const client = new Client({ serverArgs: ["--memory", "1g", "--warm", "0"] })
console.log((await run("x = bytearray(600 << 20)", { memory: "1g", client })).status)
console.log((await run("import socket; socket.create_connection(('example.org', 443), 5)")).status)
console.log((await run("1", { network: ["example.org"] })).status)
console.log((await run("print(1)", { client: new Client({ isolation: "process", serverArgs: ["--warm", "0"] }) })).stdout)
console.log(await run("1", { client: new Client({ serverArgs: ["--no-such-flag"] }) }).catch((error) => error.name + error.message))
`)
  assert.equal(done.stderr, "")
  const lines = done.stdout.split("\n")
  assert.deepEqual(lines.slice(0, 4), ["ok", "error", "ok", "1"])
  assert.match(lines[5] ?? "", /^StartErrorthe private server did not start .*no-such-flag/)
})

it("a directory of others is not used", async () => {
  const directory = temporary()
  mkdirSync(join(directory, `llmsandbox-${process.getuid?.()}`), { mode: 0o755 })
  const done = await program(`${FIRST}await run("1").catch((error) => console.log(error.name, error.message))`, { XDG_RUNTIME_DIR: directory })
  assert.match(done.stdout, /^StartError .* closed to all others/)
})

it("the socket is gone when the program has ended", async () => {
  const directory = temporary()
  const done = await program(`${SHOW}await run("1"); console.log(children()[0])`, { XDG_RUNTIME_DIR: directory })
  await ends(Number(done.stdout))
  const sockets = join(directory, `llmsandbox-${process.getuid?.()}`)
  assert.ok(existsSync(sockets))
  assert.deepEqual(readdirSync(sockets), [])
})

it("the command is missing, or is another", async () => {
  const code = `${FIRST}await run("1").catch((error) => console.log(error.name, error.message))`
  assert.match((await program(code, { PATH: "/nowhere" })).stdout, /^StartError .*on the PATH/)
  const directory = temporary()
  writeFileSync(join(directory, "llmsandbox"), "#!/bin/sh\necho not mine >&2\nexit 3\n")
  chmodSync(join(directory, "llmsandbox"), 0o755)
  const done = await program(code, { PATH: `${directory}:${process.env["PATH"]}` })
  assert.equal(done.stdout, "StartError the private server did not start (exit code 3): not mine\n")
})

it("the environment names a server, and nothing shows its key", async () => {
  const server = await Server.start("--warm", "0")
  try {
    const done = await program(`${FIRST}
const client = new Client()
console.log(client, client.url, JSON.stringify(client), (await run("print(42)")).stdout)
const sandbox = await Sandbox.create({ secrets: [{ name: "TOKEN", value: "hunter2hunter2", hosts: ["example.org"] }], network: "none" }).catch((error) => error)
const { inspect } = await import("node:util")
console.log(inspect(sandbox, { showHidden: true, depth: 9 }))
console.log(inspect(client, { showHidden: true, depth: 9 }))
`, { LLMSANDBOX_URL: server.url, LLMSANDBOX_API_KEY: server.key })
    assert.equal(done.stderr, "")
    assert.ok(done.stdout.includes(server.url) && done.stdout.includes("42"))
    assert.ok(!done.stdout.includes(server.key) && !done.stdout.includes("hunter2"))
  } finally {
    await server.close()
  }
})

it("a URL can be that of a Unix socket", async () => {
  const directory = temporary()
  const socket = join(directory, "api.sock")
  const child = spawn("llmsandbox", ["serve", "--until-stdin-closes", "--listen", `unix:${socket}`, "--warm", "0", "--log", "error"], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  try {
    await once(child.stdout, "data")
    const done = await program(`${FIRST}console.log((await run("print(1)")).stdout)`, { LLMSANDBOX_URL: `unix:${socket}` })
    assert.deepEqual(done, { stdout: "1\n\n", stderr: "", code: 0 })
  } finally {
    child.stdin.end()
    await once(child, "exit")
  }
})

it("TLS", async () => {
  const directory = temporary()
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")]
  const subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
  const made = await execute("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, ...subject])
  assert.equal(made.code, 0, made.stderr)
  const server = await Server.start("--warm", "0", "--tls-cert", cert, "--tls-key", key)
  try {
    const env = { LLMSANDBOX_URL: server.url, LLMSANDBOX_API_KEY: server.key }
    const code = `${FIRST}
try {
  const sandbox = await Sandbox.create()
  await sandbox.files.write("large", new Uint8Array(3_000_000))
  console.log((await sandbox.files.read("large")).length)
  await sandbox.run("import time; time.sleep(1000)", { signal: AbortSignal.timeout(500) })
} catch (error) {
  console.log(error.name, error.message)
}`
    assert.match((await program(code, env)).stdout, /^ConnectError .*certificate/i)
    assert.match((await program(code, { ...env, NODE_EXTRA_CA_CERTS: cert })).stdout, /^3000000\nTimeoutError /)
  } finally {
    await server.close()
  }
})
