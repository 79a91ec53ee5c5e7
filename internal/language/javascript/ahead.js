// Loaded by Node.js itself before the program when that is not known yet: it waits for the request
// on descriptor 3 and becomes its program.
'use strict'
const fs = require('fs')
// The first line that a program prints takes these, a third of what is left of its time.
require('net')
require('tty')
const before = @before@
if (before === '') {
  delete process.env.NODE_OPTIONS
} else {
  process.env.NODE_OPTIONS = before
}
delete require.cache[__filename]
try {
  fs.writeSync(4, '{"event":"ready"}\n')
  const pieces = []
  for (;;) {
    const piece = Buffer.alloc(1 << 16)
    const n = fs.readSync(3, piece)
    if (n === 0) process.reallyExit(1)
    pieces.push(piece.subarray(0, n))
    if (piece[n - 1] === 10) break
  }
  const request = JSON.parse(Buffer.concat(pieces).toString())
  if (request.dir !== process.cwd()) process.chdir(request.dir)
  Object.assign(process.env, request.env)
  process.argv.push(...(request.args || []))
  fs.writeFileSync(request.file, request.code)
  fs.writeFileSync(request.touch, 'x')
  fs.closeSync(3)
  fs.writeSync(4, '{"event":"begun"}\n')
  fs.closeSync(4)
} catch {
  process.reallyExit(1) // the code is run in another interpreter
}
