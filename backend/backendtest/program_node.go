package backendtest

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) programNode(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "javascript"}, "node")
	res := run(t, sb, `
import { Worker } from 'node:worker_threads'
import { execFileSync } from 'node:child_process'
import { createHash, pbkdf2Sync } from 'node:crypto'
import fs from 'node:fs/promises'
import http from 'node:http'
import zlib from 'node:zlib'

const code = "const { parentPort, workerData } = require('worker_threads'); let s = 0; for (let i = 0; i <= workerData; i++) s += i; parentPort.postMessage(s)"
const work = n => new Promise((ok, bad) => new Worker(code, { eval: true, workerData: n }).on('message', ok).on('error', bad))
console.log((await Promise.all([10, 100, 1000, 10000].map(work))).join(' '))
const shared = new Int32Array(new SharedArrayBuffer(4))
Atomics.add(shared, 0, 5)
console.log(Atomics.load(shared, 0))
console.log(createHash('sha256').update('x').digest('hex').slice(0, 8), pbkdf2Sync('a', 'b', 1000, 4, 'sha512').length)
const server = http.createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1')
await new Promise(ok => server.on('listening', ok))
console.log(await new Promise(ok => http.get({ port: server.address().port, host: '127.0.0.1', path: '/p' }, r => r.on('data', d => ok('' + d)))))
server.close()
await fs.writeFile('f.txt', 'async')
console.log(await fs.readFile('f.txt', 'utf8'), zlib.gunzipSync(zlib.gzipSync('zip')) + '')
console.log(execFileSync('echo', ['child']) + '' .trim())
const wasm = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11])
console.log((await WebAssembly.instantiate(wasm)).instance.exports.add(40, 2))
`, nil)
	wantLines(t, res, "55 5050 500500 50005000", "5", "2d711642 4", "served /p", "async zip", "child", "", "42")
}
