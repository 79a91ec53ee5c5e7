// Preloaded by Node: turns TypeScript into JavaScript of the same lines, which it lies beside.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const bundle = new module.constructor('sucrase');
bundle._compile(require('node:zlib').gunzipSync(fs.readFileSync(path.join(__dirname, 'sucrase.cjs.gz'))).toString(), 'sucrase');

// strip returns code without types.
function strip(code, file, more) {
  const transforms = file.endsWith('.tsx') ? ['typescript', 'jsx'] : ['typescript'];
  try {
    return bundle.exports(code, { transforms, disableESTransforms: true, filePath: file, ...more });
  } catch (e) {
    const [, what, line, column] = /^Error transforming .*?: (.*) \((\d+):(\d+)\)$/s.exec(e.message) ?? [, e.message, 1, 1];
    const error = new SyntaxError(what);
    error.stack = `SyntaxError: ${what}\n    at ${file}:${line}:${column}`;
    throw error;
  }
}

// exports.cell keeps imports that the cell does not use: later ones may.
exports.cell = (code, name) => strip(code, name, { keepUnusedImports: true }).code;

// output is the name of the JavaScript of a file; module says that it has import or export.
const endings = { '.ts': '.js', '.tsx': '.js', '.mts': '.mjs', '.cts': '.cjs' };
const output = (file, module) => file.slice(0, -path.extname(file).length) + (module ? '.mjs' : endings[path.extname(file)]);

// exports.files makes the JavaScript of files, the main one last, whose output has another ending where it alone is a module.
exports.files = (files, main) => {
  if (!isMainThread) return;
  const made = new Set(files.map((file) => output(file)));
  for (const file of files) {
    const target = file === main.source ? main.target : output(file);
    try {
      const { code, sourceMap } = strip(fs.readFileSync(file, 'utf8'), file, { sourceMapOptions: { compiledFilename: path.basename(target) } });
      // Relative imports name files as they are called here.
      const js = code.replace(/^(\s*(?:import|export)\b[^'"`;]*?\bfrom\s*|\s*import\s*)(['"])(\.\.?\/[^'"]*)\2/gm, (all, before, quote, specifier) => {
        const at = path.resolve(path.dirname(file), specifier);
        const found = [at, `${at}.ts`, `${at}.tsx`, `${at}.mts`, `${at}/index.ts`].find((f) => endings[path.extname(f)] && made.has(output(f)));
        if (!found) return all;
        const relative = path.relative(path.dirname(file), output(found));
        return `${before}${quote}${relative.startsWith('.') ? relative : `./${relative}`}${quote}`;
      });
      fs.writeFileSync(target, `${js}\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(sourceMap)).toString('base64')}\n`);
    } catch (e) {
      if (!(e instanceof SyntaxError)) throw e;
      process.stderr.write(`${e.stack}\n`);
      process.exit(1);
    }
  }
};
