// Sandboxes of the private server, and of a server with a key on a port, in Node.
import { after, before, describe, it } from "node:test"
import { Client, Sandbox } from "llmsandbox"
import { tests } from "./core.js"
import { Server } from "./servers.js"

let server: Server
before(async () => {
  server = await Server.start("--network", "full", "--max-runs", "50") // and four times as many wait
})
after(() => server.close())

for (const [where, client] of [["private server", () => new Client()], ["server with a key", () => server.client()]] as const) {
  describe(where, () => {
    let used: Client
    let sandbox: Sandbox
    before(async () => {
      used = client()
      sandbox = await Sandbox.create({ client: used })
    })
    after(() => sandbox.close())
    for (const [name, test] of Object.entries(tests)) it(name, () => test(sandbox, used))
  })
}
