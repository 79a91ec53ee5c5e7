// Answers of a server that is none, from a peer that sends what a test says. They stand for hostile or broken servers.
import assert from "node:assert/strict"
import { once } from "node:events"
import * as net from "node:net"
import { afterEach, describe, it } from "node:test"
import {
  APIError, AuthenticationError, BusyError, Client, ConnectError, InstallError, InvalidError, LostError, NotAllowedError, NotFoundError, QuotaError,
  RefusedError, Sandbox, SandboxFileExistsError, SandboxFileNotFoundError, SandboxPermissionError, TooLargeError, UnsupportedError, run,
} from "llmsandbox"
import web from "../dist/platform/web.js"
import { Endpoint } from "../dist/endpoint.js"

const RESULT = { status: "ok", exit_code: 0, stdout: "", stderr: "", duration_ms: 1, cpu_ms: 1, artifacts: [] }

function answer(body: unknown, status = "200 OK", kind = "application/json", more = ""): string {
  const data = typeof body === "string" ? body : JSON.stringify(body)
  return `HTTP/1.1 ${status}\r\nContent-Type: ${kind}\r\nContent-Length: ${data.length}\r\nConnection: close\r\n${more}\r\n${data}`
}

const problem = (body: object, status: string, more = "") => answer(body, status, "application/problem+json", more)

const peers: net.Server[] = []
afterEach(() => peers.splice(0).forEach((peer) => peer.close()))

/** Has a peer answer each connection with the next of some texts, and returns a client of it. */
async function serve(...answers: string[]): Promise<Client> {
  const peer = net.createServer((socket) => {
    socket.on("error", () => {}) // the client ends it as it likes
    socket.once("data", () => socket.end(answers.shift() ?? "", "latin1"))
  })
  peers.push(peer)
  peer.listen(0, "127.0.0.1")
  await once(peer, "listening")
  return new Client({ url: `http://127.0.0.1:${(peer.address() as net.AddressInfo).port}`, apiKey: "secret-key" })
}

describe("malformed results", () => {
  const bodies: [string, unknown][] = [
    ["list", []], ["text", '"text"'], ["not JSON", "{"], ["nesting", "[".repeat(100_000)], ["empty", {}], ["no status", { ...RESULT, status: "" }],
    ["unknown status", { ...RESULT, status: "fine" }], ["exit code of ok", { ...RESULT, exit_code: 1 }], ["number for text", { ...RESULT, stdout: 1 }],
    ["flag for number", { ...RESULT, exit_code: true }], ["fraction", { ...RESULT, exit_code: 0.5 }],
    ["number without end", JSON.stringify(RESULT).replace('"duration_ms":1', '"duration_ms":1e999')],
    ["integer that is not exact", JSON.stringify({ ...RESULT, peak_memory_bytes: 2 ** 60 })],
    ["not UTF-8", { ...RESULT, stdout: "\xff" }], ["artifact", { ...RESULT, artifacts: [1] }], ["base64", { ...RESULT, artifacts: [{ name: "a", mime: "b", data: "no base64!" }] }],
    ["chart", { ...RESULT, artifacts: [{ name: "a", mime: "b", data: "", chart: { axes: [{ series: [{ type: "line", x: [{}] }] }] } }] }],
  ]
  for (const [name, body] of bodies) {
    it(name, async () => {
      const client = await serve(answer(body))
      await assert.rejects(run("", { client }), (error) => error instanceof LostError && error.message.includes("cannot be used"))
    })
  }
})

describe("broken answers", () => {
  const answers = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", "SSH-2.0\r\n\r\n"]
  for (const data of answers) {
    it(JSON.stringify(data), async () => {
      const client = await serve(data)
      await assert.rejects(run("", { client }), (error) => error instanceof LostError && error.message.includes("ended"))
    })
  }
})

it("names of members cannot reach what objects inherit", async () => {
  const value = '{"__proto__": "a", "text/plain": "b"}'
  const client = await serve(
    answer({ id: "sb-1" }, "201 Created"),
    answer({ id: "1", language: "python" }, "201 Created"),
    answer(JSON.stringify({ ...RESULT, count: 1 }).replace(/}$/, `,"value":${value}}`)),
  )
  const kernel = await (await Sandbox.create({ client })).kernel()
  const cell = await kernel.run("")
  assert.deepEqual(Object.entries(cell.value), [["__proto__", "a"], ["text/plain", "b"]])
  assert.deepEqual([cell.text, cell.value["constructor"]], ["b", undefined])
})

it("a run that the server has lost", async () => {
  const client = await serve(answer({ ...RESULT, status: "lost", exit_code: null, reason: "gone" }))
  await assert.rejects(run("", { client }), (error) => error instanceof LostError && error.result?.status === "lost" && error.message.includes("gone"))
})

describe("problems", () => {
  const kinds: [string, string, new (...args: never[]) => Error][] = [
    ["401 Unauthorized", "unauthorized", AuthenticationError], ["403 Forbidden", "not_allowed", NotAllowedError],
    ["404 Not Found", "not_found", NotFoundError], ["403 Forbidden", "scope", NotAllowedError], ["403 Forbidden", "permission", SandboxPermissionError],
    ["404 Not Found", "file_not_found", SandboxFileNotFoundError], ["404 Not Found", "", APIError], ["409 Conflict", "exists", SandboxFileExistsError],
    ["413 Request Entity Too Large", "too_large", TooLargeError], ["429 Too Many Requests", "rate", BusyError],
    ["429 Too Many Requests", "quota", QuotaError], ["502 Bad Gateway", "", LostError], ["422 Unprocessable Entity", "unknown_language", InvalidError],
    ["422 Unprocessable Entity", "not_enforced", UnsupportedError], ["422 Unprocessable Entity", "refused", RefusedError],
    ["422 Unprocessable Entity", "install", InstallError], ["500 Internal Server Error", "internal", APIError],
    ["503 Service Unavailable", "lost", LostError], ["418 I'm a teapot", "of a later version", APIError],
  ]
  for (const [status, code, kind] of kinds) {
    it(`${status} ${code}`, async () => {
      const fields = [{ location: "body.x", message: "no" }]
      const client = await serve(problem({ status: Number(status.slice(0, 3)), code, detail: "what\x1b[31m failed\nand why", fields }, status))
      await assert.rejects(run("", { client }), (error) => {
        assert.ok(error instanceof Error)
        assert.equal(error.constructor, kind)
        assert.equal(error.name, kind.name)
        assert.equal(error.message, "what [31m failed and why: body.x: no")
        if (error instanceof APIError) assert.deepEqual([error.status, error.code], [Number(status.slice(0, 3)), code])
        return true
      })
    })
  }
})

it("a busy server is asked again", async () => {
  const busy = problem({ code: "busy", detail: "busy" }, "429 Too Many Requests", "Retry-After: 0\r\n")
  assert.ok((await run("", { client: await serve(busy, busy, answer(RESULT)) })).ok)
  await assert.rejects(run("", { client: await serve(...Array<string>(5).fill(busy), answer(RESULT)) }), BusyError)
  const late = problem({ code: "quota", detail: "spent" }, "429 Too Many Requests", "Retry-After: 3600\r\n")
  await assert.rejects(run("", { client: await serve(late) }), QuotaError)
  const wait = problem({ code: "busy", detail: "busy" }, "429 Too Many Requests", "Retry-After: 30\r\n")
  await assert.rejects(run("", { client: await serve(wait), signal: AbortSignal.timeout(100) }), { name: "TimeoutError" })
})

it("no redirect is followed", async () => {
  const moved = answer("", "307 Temporary Redirect", "text/plain", "Location: http://elsewhere.example.org/\r\n")
  await assert.rejects(run("", { client: await serve(moved) }), (error) => error instanceof APIError && error.message.includes("redirects"))
})

it("a stream that is cut", async () => {
  const client = await serve(answer({ id: "sb-1" }, "201 Created"), answer('event: stdout\ndata: "x"\n\n', "200 OK", "text/event-stream"))
  const events = (await Sandbox.create({ client })).stream("")
  assert.deepEqual((await events.next()).value, { kind: "stdout", text: "x" })
  await assert.rejects(events.next(), (error) => error instanceof LostError && error.message.includes("too early"))
})

it("a file whose end cannot be seen", async () => {
  const content = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\nbegin"
  const client = await serve(answer({ id: "sb-1" }, "201 Created"), content)
  await assert.rejects((await Sandbox.create({ client })).files.read("a"), (error) => error instanceof LostError && error.message.includes("end"))
})

it("an answer that is too large", async () => {
  const client = await serve(answer({ id: "sb-1", language: "x".repeat(9 << 20) }, "201 Created"))
  await assert.rejects(Sandbox.create({ client }), (error) => error instanceof LostError && error.message.includes("more than"))
})

it("ids are elements of paths", async () => {
  const client = await serve(answer({ id: "../keys" }, "201 Created"))
  await assert.rejects(Sandbox.create({ client }), (error) => error instanceof LostError && error.message.includes("not an id"))
  await assert.rejects(Sandbox.attach("../keys", { client }), InvalidError)
})

it("a server that is not there", async () => {
  const client = new Client({ url: "http://127.0.0.1:1" })
  await assert.rejects(run("1", { client }), (error) => error instanceof ConnectError && error.message.includes("http://127.0.0.1:1"))
})

it("malformed URLs and keys", () => {
  for (const url of ["", "example.org", "ftp://example.org", "http://", "http://a b", "http://[", "http://x:y", "unix:relative", "http://x/?a=b", "https:x"]) {
    assert.throws(() => new Client({ url }), InvalidError, url)
  }
  assert.throws(() => new Client({ url: "http://127.0.0.1", apiKey: "a\r\nb" }), InvalidError)
  assert.throws(() => new Client({ url: "https://user:hunter2@example.org" }), (error) => error instanceof InvalidError && !error.message.includes("hunter2"))
  assert.throws(() => new Client({ url: "http://127.0.0.1", isolation: "process" }), /private server/)
  assert.throws(() => new Client({ apiKey: "key" }), /LLMSANDBOX_URL/)
  assert.equal(new Client({ url: "http://127.0.0.1:80/prefix/" }).url, "http://127.0.0.1/prefix")
})

it("the web has neither sockets nor processes", async () => {
  assert.throws(() => web.connect(new Endpoint("", "/run/a.sock", "", "")), InvalidError)
  await assert.rejects(web.startPrivate([]), /needs Node, Bun or Deno/)
})
