// The tools of agent frameworks, with the frameworks themselves and a model whose turns are scripted.
import assert from "node:assert/strict"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { after, before, describe, it } from "node:test"
import { Sandbox } from "llmsandbox"
import { codeTool as aiTool } from "llmsandbox/ai"
import { codeTool as langchainTool } from "llmsandbox/langchain"
import { scriptedModel } from "./model.js"
import { PACKAGE, execute } from "./servers.js"

let sandbox: Sandbox
before(async () => {
  sandbox = await Sandbox.create({ language: "python" })
})
after(() => sandbox.close())

/** Runs code with a tool as its framework does. */
const frameworks: Readonly<Record<string, (code: string, options?: object, signal?: AbortSignal) => Promise<string>>> = {
  "vercel-ai": async (code, options, signal) => {
    const { execute } = aiTool(sandbox, options)
    assert.ok(execute)
    return String(await execute({ code }, { toolCallId: "1", messages: [], context: {}, ...(signal && { abortSignal: signal }) } as never))
  },
  "langchain-js": async (code, options, signal) => String(await langchainTool(sandbox, options).invoke({ code }, signal && { signal })),
}

for (const [name, call] of Object.entries(frameworks)) {
  describe(name, () => {
    it("runs the first lines of its page as they are typed", async () => {
      const page = readFileSync(join(PACKAGE, "..", "docs", "frameworks", `${name}.md`), "utf8")
      const path = join(PACKAGE, "build", `example-${name}.mjs`) // where the frameworks are found
      writeFileSync(path, /^```js\n(.*?)^```$/ms.exec(page)?.[1] ?? "")
      const model = await scriptedModel({ code: "print(6 * 7)" }, { code: "1 / 0" }, { other: "x" })
      try {
        const done = await execute(process.execPath, [path], { env: model.env })
        assert.deepEqual([done.stdout, done.stderr], ["Done.\n", ""])
      } finally {
        model.close()
      }
      assert.equal(model.answers.length, 3)
      assert.equal(model.answers[0], "status: ok\nstdout:\n42\n")
      assert.match(model.answers[1] ?? "", /^status: error\nexit code: 1\nstderr:\n(.|\n)*ZeroDivisionError/)
      assert.match(model.answers[2] ?? "", /code|schema/) // the framework says what is wrong with the argument
    })

    it("keeps the beginning and the end of long output", async () => {
      const answer = await call("print('a' * 5000 + 'b' * 5000)", { maxOutput: 100 })
      assert.equal(answer, `status: ok\nstdout (shortened):\n${"a".repeat(50)}\n[...]\n${"b".repeat(49)}\n`)
    })

    it("tells of artifacts and time limits", async () => {
      assert.match(await call("open('artifacts/t.csv', 'w').write('a')"), /\nartifacts: t\.csv$/)
      assert.match(await call("while True: pass", { timeout: 0.5 }), /^status: timeout\nreason: /)
    })

    it("ends the run with the signal of the framework", async () => {
      const stop = new AbortController()
      const lock = `import fcntl, time; f = open("${name}.lock", "w"); fcntl.flock(f, 2)`
      const running = call(`${lock}; open("${name}.begun", "w").close(); time.sleep(1000)`, {}, stop.signal)
      await sandbox.exec(`while ! test -e ${name}.begun; do sleep 0.01; done`)
      stop.abort()
      await assert.rejects(running)
      assert.ok((await sandbox.run(lock, { timeout: 30 })).ok)
    })

    it("fails where the sandbox does", async () => {
      await assert.rejects(call("1", { language: "brainfuck" }), /brainfuck/)
    })
  })
}
