// Runs a command with a registry that has the tarballs of a directory, and nothing else.
//   local.cjs DIR COMMAND...
'use strict';
const { createServer } = require('node:http');
const { spawn } = require('node:child_process');
const { createHash } = require('node:crypto');
const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const { gunzipSync } = require('node:zlib');

const [dir, command, ...args] = process.argv.slice(2);
const packages = new Map();
const compare = new Intl.Collator('en', { numeric: true }).compare;

// The package.json of a tarball is in its only top directory, whose name may be any.
function manifest(tar) {
  for (let at = 0; at + 512 <= tar.length; ) {
    const name = tar.toString('utf8', at, at + 100).replace(/\0.*/s, '');
    const size = parseInt(tar.toString('latin1', at + 124, at + 136), 8) || 0;
    if (/^(\.\/)?[^/]+\/package\.json$/.test(name)) return JSON.parse(tar.toString('utf8', at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error('there is no package.json in it');
}

const server = createServer((request, response) => {
  const path = decodeURIComponent(request.url);
  if (path.startsWith('/-/file/')) {
    const found = [...packages.values()].flatMap((versions) => [...versions.values()]).find((v) => v.file === path.slice(8));
    response.writeHead(found ? 200 : 404).end(found && readFileSync(join(dir, found.file)));
    return;
  }
  const versions = packages.get(path.slice(1));
  if (!versions) {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not in the folder of tarballs"}');
    return;
  }
  const base = `http://127.0.0.1:${server.address().port}/-/file/`;
  const all = {};
  for (const [version, v] of versions) {
    all[version] = { ...v.manifest, dist: { tarball: base + encodeURIComponent(v.file), integrity: v.integrity } };
  }
  const names = [...versions.keys()];
  const latest = (names.filter((v) => !v.includes('-')).sort(compare).pop()) || names.sort(compare).pop();
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ name: path.slice(1), 'dist-tags': { latest }, versions: all }));
});

for (const file of readdirSync(dir)) {
  if (!/\.(tgz|tar\.gz)$/.test(file)) continue;
  try {
    const data = readFileSync(join(dir, file));
    const m = manifest(gunzipSync(data, { maxOutputLength: 1 << 30 }));
    if (!packages.has(m.name)) packages.set(m.name, new Map());
    packages.get(m.name).set(m.version, { file, manifest: m, integrity: 'sha512-' + createHash('sha512').update(data).digest('base64') });
  } catch (err) {
    console.error(`${file}: ${err.message}`);
    process.exit(1);
  }
}
server.listen(0, '127.0.0.1', () => {
  const registry = `http://127.0.0.1:${server.address().port}/`;
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, npm_config_registry: registry } });
  child.on('error', (err) => {
    console.error(err.message);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(signal ? 1 : code));
});
