// Writes src/schema.ts: the types of what this package sends and receives, from /openapi.json of a server that this starts.
// Usage: node scripts/schema.mjs [--check]
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile, writeFile } from "node:fs/promises"
import openapiTS, { astToString } from "openapi-typescript"

// What the package uses by name. What these refer to comes along.
const USED = [
  "Cell", "Command", "Completion", "Files", "Inspection", "Kernel", "NewCell", "NewKernel", "NewLibraries", "NewSandbox", "OneShot", "Place",
  "Problem", "Program", "Result", "Sandbox", "Sandboxes", "Variables",
]

async function openapi() {
  const args = ["serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--warm", "0", "--log", "error"]
  const server = spawn("llmsandbox", args, { stdio: ["pipe", "pipe", "inherit"] })
  try {
    const [line] = await once(server.stdout, "data")
    return await (await fetch(`${JSON.parse(line).url}/openapi.json`)).json()
  } finally {
    server.stdin.end()
  }
}

function reachable(schemas) {
  const found = {}
  const add = (name) => {
    if (found[name]) return
    if (!schemas[name]) throw new Error(`the document has no ${name}: correct USED in scripts/schema.mjs`)
    found[name] = schemas[name]
    for (const [, other] of JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g)) add(other)
  }
  USED.forEach(add)
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)))
}

async function schema() {
  const document = await openapi()
  const { openapi: version, info, components } = document
  const nodes = await openapiTS({ openapi: version, info, paths: {}, components: { schemas: reachable(components.schemas) } }, { exportType: true })
  const text = astToString(nodes)
  const types = text.slice(text.indexOf("export type components"), text.indexOf("export type $defs"))
  return `// Written by scripts/schema.mjs from the server's /openapi.json. Do not edit it.\n${types}`
}

const file = new URL("../src/schema.ts", import.meta.url)
const text = await schema()
if (process.argv.includes("--check")) {
  if ((await readFile(file, "utf8")) !== text) {
    console.error("src/schema.ts is not what the server's /openapi.json makes: run npm run schema")
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}
