// The package as it is installed: in Node, Bun and Deno, in bundles, and with the first lines of its documentation.
import assert from "node:assert/strict"
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { before, describe, it } from "node:test"
import { build } from "esbuild"
import { tests } from "./core.js"
import { CHILDREN, PACKAGE, Server, ends, execute, temporary } from "./servers.js"

const PAGE = readFileSync(join(PACKAGE, "..", "docs", "javascript.md"), "utf8")
const examples = (language: string) => [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(([, code]) => code ?? "")

/** Returns a binary of a package, whose scripts of the installation have not run. */
function binary(scope: string, name: string): string {
  const scoped = join(PACKAGE, "node_modules", scope)
  const [only] = readdirSync(scoped)
  const found = [join(scoped, only ?? "", name), join(scoped, only ?? "", "bin", name)]
  return found.find((path) => readdirSync(join(path, "..")).includes(name)) ?? name
}

const RUNTIMES: Readonly<Record<string, string[]>> = {
  node: [process.execPath],
  bun: [binary("@oven", "bun"), "run"],
  deno: [binary("@deno", "deno"), "run", "-A"],
}

let installed: string
/** Runs a file of the directory where the package is installed. */
async function runs(runtime: string, file: string, env: Record<string, string> = {}, ...args: string[]) {
  const [command = "", ...first] = RUNTIMES[runtime] ?? []
  const done = await execute(command, [...first, file, ...args], { cwd: installed, env })
  assert.deepEqual([done.stderr, done.code], ["", 0])
  return done.stdout
}

before(async () => {
  installed = temporary()
  const packed = await execute("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", installed], { cwd: PACKAGE })
  assert.equal(packed.code, 0, packed.stderr)
  writeFileSync(join(installed, "package.json"), '{"private": true, "type": "module"}')
  const args = ["install", "--silent", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", `./${packed.stdout.trim()}`]
  const done = await execute("npm", args, { cwd: installed })
  assert.deepEqual([done.stderr, done.code], ["", 0])
  copyFileSync(join(PACKAGE, "build", "core.js"), join(installed, "core.js"))
})

it("has its own files, and brings no other package", () => {
  assert.deepEqual(readdirSync(join(installed, "node_modules")).filter((name) => !name.startsWith(".")), ["llmsandbox"])
  const names = readdirSync(join(installed, "node_modules", "llmsandbox")).filter((name) => name !== "LICENSE") // a copy, made by npm pack
  assert.deepEqual(names.sort(), ["README.md", "dist", "package.json"])
})

it("has the types that the server's description makes", async () => {
  const done = await execute(process.execPath, ["scripts/schema.mjs", "--check"], { cwd: PACKAGE })
  assert.deepEqual([done.stderr, done.code], ["", 0])
})

for (const runtime of Object.keys(RUNTIMES)) {
  describe(runtime, () => {
    it("does all with a private server", async () => {
      assert.equal(await runs(runtime, "core.js", {}, "--all"), Object.keys(tests).join("\n") + "\n")
    })

    it("does all with a server on a port", async () => {
      const server = await Server.start("--network", "full", "--max-runs", "50")
      try {
        const env = { LLMSANDBOX_URL: server.url, LLMSANDBOX_API_KEY: server.key }
        assert.equal(await runs(runtime, "core.js", env, "--all"), Object.keys(tests).join("\n") + "\n")
      } finally {
        await server.close()
      }
    })

    it("leaves no server, however it ends", async () => {
      const program = `import { Sandbox } from "llmsandbox"${CHILDREN}await (await Sandbox.create()).kernel(); console.log(children()[0])`
      writeFileSync(join(installed, "leaves.mjs"), program)
      await ends(Number(await runs(runtime, "leaves.mjs")))
      writeFileSync(join(installed, "killed.mjs"), `${program}; process.kill(process.pid, "SIGKILL")`)
      const [command = "", ...first] = RUNTIMES[runtime] ?? []
      const killed = await execute(command, [...first, "killed.mjs"], { cwd: installed })
      assert.equal(killed.code, null)
      await ends(Number(killed.stdout))
    })

    it("runs the first lines of docs/javascript.md as they are typed", async () => {
      writeFileSync(join(installed, "first.mjs"), examples("js")[0] ?? "")
      assert.equal(await runs(runtime, "first.mjs"), "42\n\nok NAME,AGE\nANNA,41\n\n\n21\n")
    })
  })
}

it("runs all of docs/javascript.md", async () => {
  writeFileSync(join(installed, "page.mjs"), examples("js").join("\n"))
  const lines = (await runs("node", "page.mjs")).split("\n")
  assert.match(lines.find((line) => line.startsWith("false ")) ?? "", /^false timeout /)
  for (const line of ["hello", "again", "TimeoutError"]) assert.ok(lines.includes(line), line)
})

it("closes at the end of a block in TypeScript", async () => {
  const using = examples("ts").find((code) => code.includes("await using"))
  writeFileSync(join(installed, "using.ts"), `import { Sandbox } from "llmsandbox"\n${using}`)
  const built = await build({ entryPoints: [join(installed, "using.ts")], format: "esm", target: "node20", outfile: join(installed, "using.mjs") })
  assert.deepEqual(built.warnings, [])
  assert.equal(await runs("node", "using.mjs"), "1024\n")
  assert.equal(await runs("bun", "using.ts"), "1024\n")
  assert.equal(await runs("deno", "using.ts"), "1024\n")
})

it("is typed for strict programs, which need no types of Node", async () => {
  const code = `import { Client, type Result, Sandbox, run } from "llmsandbox"
const key = "k"
${examples("ts")[0]}
const result: Result = await run("1", { client, timeout: undefined })
// @ts-expect-error
await run(1)
// @ts-expect-error
await sandbox.install("numpy")
// @ts-expect-error
result.status = "ok"
const code: number | null = result.exitCode
new Blob(result.plots.map((plot) => plot.data))
for await (const event of sandbox.stream("1")) if (event.kind === "done") console.log(event.result.cpuTime, code)
export {}
`
  writeFileSync(join(installed, "types.ts"), code)
  const flags = "--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --module nodenext --target es2022 --lib es2022,esnext.disposable,dom".split(" ")
  const done = await execute(process.execPath, [join(PACKAGE, "node_modules/typescript/bin/tsc"), ...flags, "types.ts"], { cwd: installed })
  assert.equal(done.stdout, "")
})

describe("bundles", () => {
  const program = `import { Client, Sandbox, run } from "llmsandbox"
const [url, apiKey] = globalThis.process.argv.slice(2)
const client = new Client({ url, apiKey })
console.log((await run("print(6 * 7)", { client })).stdout.trim())
const sandbox = await Sandbox.create({ client })
await sandbox.files.write("a", "b")
console.log(await sandbox.files.readText("a"))
for await (const event of sandbox.stream("print(1, flush=True); import time; time.sleep(1000)")) { console.log(event.kind); break }
const kernel = await sandbox.kernel()
console.log((await kernel.run("6 * 7")).text)
await sandbox.run("while True: pass", { signal: AbortSignal.timeout(300) }).catch((error) => console.log(error.name))
await sandbox.close()
await run("1", { client: new Client() }).catch((error) => console.log(error.name))
`
  const conditions: Readonly<Record<string, { platform: "browser" | "neutral"; conditions?: string[] }>> = {
    browser: { platform: "browser" },
    neutral: { platform: "neutral" },
    "Cloudflare Workers": { platform: "neutral", conditions: ["workerd", "worker", "browser"] },
    "Vercel's edge": { platform: "neutral", conditions: ["edge-light"] },
  }
  for (const [name, options] of Object.entries(conditions)) {
    it(`${name} has nothing of Node, and runs`, async () => {
      const directory = join(installed, name.replace(/\W/g, "-"))
      mkdirSync(directory)
      writeFileSync(join(directory, "entry.js"), program)
      // An import of node: that is not external fails here.
      const built = await build({ ...options, entryPoints: [join(directory, "entry.js")], bundle: true, format: "esm", outfile: join(directory, "out.mjs"), metafile: true })
      const inputs = Object.keys(built.metafile.inputs)
      assert.ok(inputs.some((path) => path.endsWith("platform/web.js")) && !inputs.some((path) => /node|http|private/.test(path.split("dist/")[1] ?? "")))
      assert.doesNotMatch(readFileSync(join(directory, "out.mjs"), "utf8"), /["']node:|require\(/)
      const server = await Server.start("--warm", "0")
      try {
        assert.equal(await runs("node", join(directory, "out.mjs"), {}, server.url, server.key), "42\nb\nstdout\n42\nTimeoutError\nStartError\n")
      } finally {
        await server.close()
      }
    })
  }
})
