// Makes dist from src: files whose names have a digest of their content, the page that names them, and the licences of what they contain.
import { build } from "esbuild";
import { mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { basename } from "node:path";

// Another directory is for a test that compares.
const out = process.argv[2] ?? "dist";
rmSync(out, { recursive: true, force: true });
mkdirSync(out + "/assets", { recursive: true });
const made = await build({
  entryPoints: ["src/main.tsx", "src/style.css", "src/icon.svg"],
  outdir: out + "/assets",
  entryNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "copy" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
const outputs = Object.keys(made.metafile.outputs).map((f) => basename(f));
const named = (begin, end) => "/assets/" + outputs.find((f) => f.startsWith(begin) && f.endsWith(end));
writeFileSync(
  out + "/index.html",
  readFileSync("src/index.html", "utf8")
    .replace("{script}", named("main-", ".js"))
    .replace("{style}", named("style-", ".css"))
    .replace("{icon}", named("icon-", ".svg")),
);

const used = new Set();
for (const f of Object.keys(made.metafile.inputs)) {
  const name = /node_modules\/((?:@[^/]*\/)?[^/]*)/.exec(f)?.[1];
  if (name) used.add(name);
}
const licences = [...used].sort().map((name) => {
  const dir = `node_modules/${name}`;
  const file = ["LICENSE", "LICENSE.md", "license"].map((f) => `${dir}/${f}`).find(existsSync);
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${JSON.parse(readFileSync(`${dir}/package.json`, "utf8")).version}\n\n${readFileSync(file, "utf8").trim()}\n`;
});
writeFileSync(out + "/assets/LICENSES.txt", licences.join("\n----\n\n"));
