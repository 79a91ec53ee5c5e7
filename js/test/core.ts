// What works with every server and in every runtime. Tests call these functions; as a program, this file calls all of them with
// the private server of the process, or the one that LLMSANDBOX_URL names.
import assert from "node:assert/strict"
import process from "node:process"
import {
  Client, ClosedError, InstallError, InvalidError, type Kernel, NotAllowedError, NotFoundError, PausedError, type RunEvent, Sandbox, SandboxError,
  SandboxFileNotFoundError, TooLargeError, run,
} from "llmsandbox"

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

type Test = (sandbox: Sandbox, client: Client) => Promise<void>

async function withKernel(sandbox: Sandbox, use: (kernel: Kernel) => Promise<void>): Promise<void> {
  const kernel = await sandbox.kernel()
  try {
    await use(kernel)
  } finally {
    await kernel.close()
  }
}

async function all<E>(events: AsyncIterable<E>): Promise<E[]> {
  const list: E[] = []
  for await (const event of events) list.push(event)
  return list
}

function written(events: readonly RunEvent<never>[], kind: "stdout" | "stderr"): string {
  return events.map((event) => (event.kind === kind ? event.text : "")).join("")
}

/** Returns code that holds a lock until it is ended, and notes that it has begun. */
function holds(name: string): string {
  return `import fcntl, time; f = open("${name}.lock", "w"); fcntl.flock(f, 2); open("${name}.begun", "a").write("x"); print("begun", flush=True); time.sleep(1000)`
}

/** Fails unless such code has been ended, which has begun once. It would end by itself after a minute. */
async function heldOnce(sandbox: Sandbox, name: string): Promise<void> {
  const result = await sandbox.run(`import fcntl; fcntl.flock(open("${name}.lock", "w"), 2)`, { timeout: 30 })
  assert.equal(result.status, "ok")
  assert.equal(await sandbox.files.readText(`${name}.begun`), "x")
}

/** The tests by name. */
export const tests: Readonly<Record<string, Test>> = {
  async "run"(sandbox) {
    const code = "import sys; print(sys.argv[1:], input()); print('no', file=sys.stderr)"
    const result = await sandbox.run(code, { args: ["a"], stdin: "typed\n" })
    assert.deepEqual([result.status, result.ok, result.exitCode], ["ok", true, 0])
    assert.deepEqual([result.stdout, result.stderr], ["['a'] typed\n", "no\n"])
    assert.ok(result.duration > 0)
    assert.deepEqual([result.sandboxID, result.language], [sandbox.id, "python"])
  },

  async "code that fails"(sandbox) {
    let result = await sandbox.run("raise SystemExit(3)")
    assert.deepEqual([result.status, result.exitCode, result.ok], ["error", 3, false])
    result = await sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert.deepEqual([result.status, result.exitCode, result.signal], ["killed", null, "SIGKILL"])
    result = await sandbox.run("while True: pass", { timeout: 0.5 })
    assert.deepEqual([result.status, result.exitCode], ["timeout", null])
    assert.ok(result.reason)
  },

  async "options of a run"(sandbox) {
    await sandbox.files.mkdir("below")
    const where = await sandbox.run("import os; print(os.getcwd())", { cwd: "below" })
    assert.match(where.stdout, /\/below\n$/)
    const code = "import os, other; print(os.environ['A'], other.x)"
    const files = { "other.py": new TextEncoder().encode("x = 1") }
    assert.equal((await sandbox.run(code, { env: { A: "b" }, files })).stdout, "b 1\n")
    assert.equal((await sandbox.run("echo hello", { language: "bash" })).stdout, "hello\n")
  },

  async "exec"(sandbox) {
    assert.equal((await sandbox.exec("echo a b | tr a-z A-Z; exit 2")).exitCode, 2)
    assert.equal((await sandbox.exec(["cat"], { stdin: "in" })).stdout, "in")
    await assert.rejects(sandbox.exec([]), InvalidError)
  },

  async "run in a sandbox of its own"(_, client) {
    const result = await run("print(6 * 7)", { client, memory: "64m", cpus: 0.5 })
    assert.deepEqual([result.stdout, result.ok], ["42\n", true])
  },

  async "stream"(sandbox) {
    const events = await all(sandbox.stream("import sys; print('é' * 3, flush=True); print('b', file=sys.stderr)"))
    assert.deepEqual([written(events as RunEvent<never>[], "stdout"), written(events as RunEvent<never>[], "stderr")], ["ééé\n", "b\n"])
    const last = events.at(-1)
    assert.ok(last?.kind === "done" && last.result.ok)
  },

  async "a stream that is left ends its run"(sandbox) {
    for await (const event of sandbox.stream(holds("stream"))) {
      assert.ok(event.kind === "stdout" && event.text.startsWith("begun"))
      break
    }
    await heldOnce(sandbox, "stream")
  },

  async "a signal ends a run"(sandbox, client) {
    const stop = new AbortController()
    const running = sandbox.run(holds("run"), { signal: stop.signal })
    await sandbox.exec("while ! test -s run.begun; do sleep 0.01; done")
    stop.abort(new Error("stopped here"))
    await assert.rejects(running, /stopped here/)
    await heldOnce(sandbox, "run")
    await assert.rejects(run("1", { client, signal: stop.signal }), /stopped here/)
  },

  async "a signal ends a stream"(sandbox) {
    const stop = new AbortController()
    await assert.rejects(async () => {
      for await (const event of sandbox.stream(holds("aborted"), { signal: stop.signal })) {
        assert.equal(event.kind, "stdout")
        stop.abort()
      }
    }, { name: "AbortError" })
    await heldOnce(sandbox, "aborted")
  },

  async "files"(sandbox) {
    const { files } = sandbox
    await files.write("a/é &?#%.txt", "één")
    assert.equal(await files.readText("a/é &?#%.txt"), "één")
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    await files.write("a/data", bytes)
    assert.deepEqual([...(await files.read("a/data"))], [...bytes])
    await assert.rejects(files.readText("a/data"), InvalidError)
    const listed = (await files.list("a")).map((file) => [file.name, file.type, file.size])
    assert.deepEqual(listed, [["data", "file", 256], ["é &?#%.txt", "file", 5]])
    await files.rename("a/data", "a/other")
    const described = await files.stat("a/other")
    assert.deepEqual([described.type, described.mode], ["file", 0o644])
    assert.ok(described.modified instanceof Date)
    await files.write("empty", "")
    assert.equal((await files.read("empty")).length, 0)
    await files.mkdir("x/y")
    assert.equal((await files.stat("x")).type, "directory")
    await files.remove("a")
    assert.ok(!(await files.list()).some((file) => file.name === "a"))
    const large = new Uint8Array(3_200_000).map((_, i) => i % 251)
    await files.write("large", large)
    const again = await files.read("large")
    assert.ok(again.length === large.length && again.every((byte, i) => byte === i % 251))
    await files.write("view", large.subarray(1, 4))
    assert.deepEqual([...(await files.read("view"))], [1, 2, 3])
  },

  async "files that are missing"(sandbox) {
    await assert.rejects(sandbox.files.read("missing"), (error) => error instanceof SandboxFileNotFoundError && error.code === "file_not_found")
    await assert.rejects(sandbox.files.write("/etc/passwd", "x"), (error) => error instanceof SandboxError && error.message.includes("/etc/passwd"))
  },

  async "kernel"(sandbox) {
    let closed: Kernel | undefined
    await withKernel(sandbox, async (kernel) => {
      closed = kernel
      assert.equal(kernel.language, "python")
      assert.ok((await kernel.run("x = 20")).ok)
      const cell = await kernel.run("print('p')\nx + 1")
      assert.deepEqual([cell.text, cell.stdout, cell.count], ["21", "p\n", 2])
      assert.equal((await kernel.run("1 / 0")).error?.name, "ZeroDivisionError")
      assert.equal((await kernel.run("input()", { stdin: ["typed"] })).text, "'typed'")
      assert.deepEqual((await kernel.variables()).map((variable) => variable.name), ["x"])
      assert.ok((await kernel.complete("prin")).matches.includes("print"))
      const code = "'😀'; x.bit_len"
      const { matches, start, end } = await kernel.complete(code)
      assert.match(code.slice(0, start) + matches[0] + code.slice(end), /^'😀'; x\.bit_length/)
      assert.match(await kernel.inspect("x"), /int/)
      const late = await kernel.run("import time; time.sleep(1000)", { timeout: 1 })
      assert.deepEqual([late.status, late.interrupted, late.stateLost], ["timeout", true, false])
      const events = await all(kernel.stream("print(1)\nx"))
      assert.equal(written(events as RunEvent<never>[], "stdout"), "1\n")
      const last = events.at(-1)
      assert.ok(last?.kind === "done" && last.result.text === "20")
      await kernel.reset()
      assert.equal((await kernel.run("x")).status, "error")
      await kernel.restart()
      assert.equal((await kernel.run("1")).count, 1)
    })
    await assert.rejects(async () => closed?.run("1"), ClosedError)
  },

  async "a kernel is interrupted"(sandbox) {
    await withKernel(sandbox, async (kernel) => {
      let last: string | undefined
      for await (const event of kernel.stream("import time\nprint('begun', flush=True)\ntime.sleep(1000)")) {
        if (event.kind === "stdout") await kernel.interrupt()
        if (event.kind === "done") last = event.result.status
      }
      assert.equal(last, "killed")
    })
  },

  async "artifacts"(sandbox) {
    const code = `import base64; open("artifacts/p.png", "wb").write(base64.b64decode("${PNG}")); open("artifacts/t.csv", "w").write("a,b\\n")`
    const result = await sandbox.run(code)
    assert.deepEqual(result.artifacts.map((artifact) => artifact.name).sort(), ["p.png", "t.csv"])
    const [plot] = result.plots
    assert.deepEqual([plot?.mime, plot?.width, plot?.height], ["image/png", 1, 1])
    assert.equal(btoa(String.fromCharCode(...(plot?.data ?? []))), PNG)
    const table = result.files.find((file) => file.name === "t.csv")
    assert.equal(new TextDecoder().decode(table?.data), "a,b\n")
  },

  async "attach and list"(_, client) {
    const sandbox = await Sandbox.create({ labels: { of: "test" }, client })
    await sandbox.files.write("a", "1")
    const same = await Sandbox.attach(sandbox.id, { client })
    assert.equal(await same.files.readText("a"), "1")
    await same.close()
    assert.deepEqual((await client.list({ labels: { of: "test" } })).map((one) => one.id), [sandbox.id])
    await assert.rejects(client.list({ labels: { "of=test": "" } }), InvalidError)
    await sandbox.setLifetime(600)
    assert.ok((await sandbox.info()).deadline instanceof Date)
    await sandbox.setNetwork("none")
    await sandbox.pause()
    await assert.rejects(sandbox.run("1"), PausedError)
    // What refuses a large file says why, and is used again.
    await assert.rejects(sandbox.files.write("large", new Uint8Array(5_000_000)), PausedError)
    await sandbox.resume()
    assert.ok((await sandbox.run("1")).ok)
    await sandbox.close()
    await sandbox.close()
    assert.deepEqual(await client.list({ labels: { of: "test" } }), [])
    await assert.rejects(Sandbox.attach(sandbox.id, { client }), NotFoundError)
    await assert.rejects(sandbox.run("1"), ClosedError)
  },

  async "a sandbox that has ended"(_, client) {
    const sandbox = await Sandbox.create({ client })
    await (await Sandbox.attach(sandbox.id, { client })).destroy()
    await assert.rejects(sandbox.run("1"), NotFoundError)
    await sandbox.close()
  },

  async "reset"(_, client) {
    const sandbox = await Sandbox.create({ resettable: true, client })
    await sandbox.files.write("a", "1")
    await sandbox.reset()
    assert.ok(!(await sandbox.files.list()).some((file) => file.name === "a"))
    await sandbox[Symbol.asyncDispose]()
  },

  async "refusals"(_, client) {
    await assert.rejects(run("1", { memory: "64g", client }), NotAllowedError)
    await assert.rejects(run("1", { language: "brainfuck", client }), /brainfuck/)
    await assert.rejects(run("#".repeat(9 << 20), { client }), TooLargeError)
    await assert.rejects(run("\ud800", { client }), /surrogate/)
    await assert.rejects(run("1", { timeout: NaN, client }), /timeout_seconds/)
    await assert.rejects(run("1", { memory: "much", client }), /not a size/)
    await assert.rejects(run("1", { libraries: "numpy" as unknown as string[], client }), /use a list, such as \["numpy"\]/)
  },

  async "install"(sandbox) {
    assert.equal((await sandbox.run("import tabulate")).status, "error")
    await sandbox.install(["tabulate==0.9.0"])
    assert.equal((await sandbox.run("import tabulate; print(tabulate.__name__)")).stdout, "tabulate\n")
    await assert.rejects(sandbox.install(["no-such-library-of-anybody==99"]), InstallError)
  },

  async "many at a time"(sandbox) {
    const numbers = Array.from({ length: 100 }, (_, n) => n)
    const seen = await Promise.all(numbers.map(async (n) => {
      await sandbox.files.write(`files/${n}`, String(n))
      return (await sandbox.files.readText(`files/${n}`)) + (await sandbox.exec(["echo", String(n)])).stdout
    }))
    assert.deepEqual(seen, numbers.map((n) => `${n}${n}\n`))
  },
}

if (process.argv[2] === "--all") {
  const client = new Client()
  const sandbox = await Sandbox.create({ client })
  for (const [name, test] of Object.entries(tests)) {
    await test(sandbox, client)
    console.log(name)
  }
  await sandbox.close()
}
