// Makes dist from src: files whose names have a digest of their content, the page that names them, and the licences of what they contain.
import { build } from "esbuild";
import { mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";

// Another directory is for a test that compares.
const out = process.argv[2] ?? "dist";
rmSync(out, { recursive: true, force: true });
mkdirSync(out + "/assets", { recursive: true });
// See src/styleless.ts. What xterm has of each is counted, so that another version of it cannot have one that is missed.
const styleless = {
  name: "styleless",
  setup({ onLoad }) {
    onLoad({ filter: /@xterm\/xterm\/lib\/xterm\.mjs$/ }, ({ path }) => {
      let text = readFileSync(path, "utf8");
      for (const [from, count, to] of [[/[\w.]+\.createElement\("style"\)/g, 3, "styleElement()"], [/(\w+)\.setAttribute\("style",/g, 1, "setStyle($1,"]]) {
        const found = text.match(from)?.length;
        if (found !== count) throw new Error(`${path} has ${found} of ${from}, and not ${count}: look at what it does with styles`);
        text = text.replace(from, to);
      }
      return { contents: `import { setStyle, styleElement } from ${JSON.stringify(resolve("src/styleless.ts"))};\n${text}`, resolveDir: dirname(path) };
    });
  },
};
const made = await build({
  entryPoints: ["src/main.tsx", "src/style.css", "src/icon.svg"],
  outdir: out + "/assets",
  entryNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  splitting: true,
  plugins: [styleless],
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
