// The main flows of the TypeScript SDKs against the server that the environment names.

import assert from 'node:assert/strict'
import {
  AuthenticationError, CommandExitError, FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError, NotFoundError, Sandbox, SandboxError,
  SandboxNotFoundError, TimeoutError,
} from 'e2b'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'

// failure is what a promise is rejected with, an error of a class.
async function failure(promise, kind) {
  const error = await promise.then((value) => assert.fail(`it is no error: ${JSON.stringify(value)}`), (e) => e)
  assert.ok(error instanceof kind, `${error.name}: ${error.message}, want ${kind.name}`)
  return error
}

// event returns a function and a promise of its first call's argument for which wanted holds.
function event(wanted) {
  let found, over
  const seen = new Promise((resolve, reject) => {
    found = resolve
    over = setTimeout(() => reject(new Error('nothing came for 30 seconds')), 30_000)
  })
  return [(value) => { if (wanted(value)) { clearTimeout(over); found(value) } }, seen]
}

async function life() {
  const metadata = { who: 'me & you', 'a=b': 'ä/+%' }
  const sandbox = await Sandbox.create({ metadata, envs: { A: '1' }, timeoutMs: 120_000 })
  try {
    assert.ok(await sandbox.isRunning())
    const info = await sandbox.getInfo()
    assert.deepEqual([info.sandboxId, info.templateId, info.metadata, info.state], [sandbox.sandboxId, 'base', metadata, 'running'])
    assert.ok(info.endAt - info.startedAt > 100_000 && info.cpuCount >= 1, JSON.stringify(info))
    const found = await Sandbox.list({ query: { metadata, state: ['running'] } }).nextItems()
    assert.deepEqual(found.map((s) => s.sandboxId), [sandbox.sandboxId])
    await sandbox.setTimeout(300_000)
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1000 })
    assert.ok((await Sandbox.getInfo(sandbox.sandboxId)).endAt - info.endAt > 100_000, 'connect has not left the time that was set')
    assert.equal((await again.commands.run('echo $A $E2B_SANDBOX_ID')).stdout, `1 ${sandbox.sandboxId}\n`)
  } finally {
    assert.ok(await sandbox.kill())
  }
  assert.ok(!await sandbox.kill() && !await sandbox.isRunning())
  await failure(sandbox.getInfo(), SandboxNotFoundError)
  await failure(sandbox.setTimeout(1000), SandboxNotFoundError)
  await failure(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
  await failure(sandbox.commands.run('true'), SandboxError)
  await failure(sandbox.files.read('x'), SandboxError)
}

async function refusals() {
  await failure(Sandbox.create({ apiKey: 'e2b_00' }), AuthenticationError)
  assert.match((await failure(Sandbox.create('none-of-this-name'), SandboxError)).message, /none-of-this-name/)
  for (const options of [{ timeoutMs: 10 ** 10 }, { network: { denyOut: ['10.0.0.0/8'] } }]) {
    await failure(Sandbox.create(options), SandboxError)
  }
}

async function pages() {
  const metadata = { pages: crypto.randomUUID() }
  const made = []
  try {
    for (let i = 0; i < 3; i++) made.push(await Sandbox.create({ metadata, timeoutMs: 120_000 }))
    const ids = made.map((s) => s.sandboxId)
    for (const [order, wanted] of [['asc', ids], ['desc', ids.toReversed()]]) {
      const list = Sandbox.list({ query: { metadata }, limit: 2, order })
      const first = await list.nextItems()
      assert.ok(first.length === 2 && list.hasNext && list.nextToken)
      const rest = await Sandbox.list({ query: { metadata }, limit: 2, order, nextToken: list.nextToken }).nextItems()
      assert.deepEqual([...first, ...await list.nextItems()].map((s) => s.sandboxId), wanted)
      assert.deepEqual(rest.map((s) => s.sandboxId), wanted.slice(2))
      assert.ok(!list.hasNext)
    }
    const full = Sandbox.list({ query: { metadata }, limit: 3 })
    assert.ok((await full.nextItems()).length === 3 && !full.hasNext)
    const since = Sandbox.list({ query: { metadata, startedAfter: (await made[2].getInfo()).startedAt } })
    assert.ok((await since.nextItems()).some((s) => s.sandboxId === ids[2]))
    await failure(Sandbox.list({ nextToken: 'none' }).nextItems(), SandboxError)
  } finally {
    await Promise.all(made.map((s) => s.kill()))
  }
}

async function commands(sandbox) {
  const done = await sandbox.commands.run('echo out; echo err >&2; pwd; echo $HOME')
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['out\n/home/user\n/home/user\n', 'err\n', 0])
  const failed = await failure(sandbox.commands.run('echo x; exit 3'), CommandExitError)
  assert.deepEqual([failed.exitCode, failed.stdout], [3, 'x\n'])
  const seen = { out: '', err: '' }
  const options = { onStdout: (s) => { seen.out += s }, onStderr: (s) => { seen.err += s }, envs: { B: 'ä' }, cwd: '/tmp' }
  await sandbox.commands.run('for i in 1 2 3; do echo $i$B; done; pwd >&2', options)
  assert.deepEqual(seen, { out: '1ä\n2ä\n3ä\n', err: '/tmp\n' })
  await failure(sandbox.commands.run('sleep 60', { timeoutMs: 1000 }), TimeoutError)
  await failure(sandbox.commands.run('true', { cwd: '/none' }), InvalidArgumentError)
  await failure(sandbox.commands.run('true', { user: 'nobody-here' }), AuthenticationError)
  const all = await Promise.all(Array.from({ length: 5 }, (_, i) => sandbox.commands.run(`echo ${i}`)))
  assert.deepEqual(all.map((d) => d.stdout), ['0\n', '1\n', '2\n', '3\n', '4\n'])

  const cat = await sandbox.commands.run('cat', { background: true, stdin: true })
  const listed = (await sandbox.commands.list()).find((p) => p.pid === cat.pid)
  assert.deepEqual([listed.cmd, listed.args], ['/bin/bash', ['-l', '-c', 'cat']])
  await sandbox.commands.sendStdin(cat.pid, 'typed\n')
  const other = await sandbox.commands.connect(cat.pid)
  await cat.sendStdin(new TextEncoder().encode('möre\n'))
  await cat.closeStdin()
  assert.equal((await cat.wait()).stdout, 'typed\nmöre\n')
  assert.equal((await other.wait()).exitCode, 0)

  const asleep = await sandbox.commands.run('sleep 60', { background: true })
  await asleep.disconnect()
  assert.ok(await sandbox.commands.kill(asleep.pid) && !await sandbox.commands.kill(asleep.pid))
  const killed = await sandbox.commands.run('sleep 60', { background: true })
  assert.ok(await killed.kill())
  await failure(killed.wait(), CommandExitError)
  await failure(sandbox.commands.connect(999_999), NotFoundError)
  await failure(sandbox.commands.sendStdin(999_999, 'x'), NotFoundError)
  await failure(sandbox.commands.run('true', { requestTimeoutMs: 1 }), TimeoutError) // no program starts so soon
}

async function terminals(sandbox) {
  let shown = ''
  const [onData, sized] = event((data) => (shown += new TextDecoder().decode(data)).includes('20 50'))
  const pty = await sandbox.pty.create({ rows: 20, cols: 50, onData, timeoutMs: 60_000, envs: { C: '3' } })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
  await sized
  await sandbox.pty.resize(pty.pid, { rows: 30, cols: 60 })
  const again = await sandbox.pty.connect(pty.pid, { onData: () => {} })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; echo "<$C>"; exit 4\n'))
  for (const handle of [pty, again]) assert.equal((await failure(handle.wait(), CommandExitError)).exitCode, 4)
  assert.ok(shown.includes('30 60') && shown.includes('<3>'), shown)
  const left = await sandbox.pty.create({ rows: 20, cols: 50, onData: () => {} })
  assert.ok(await sandbox.pty.kill(left.pid))
}

async function files(sandbox) {
  const { files } = sandbox
  assert.deepEqual(await files.write('dir/a.txt', 'hällo'), { name: 'a.txt', type: 'file', path: '/home/user/dir/a.txt', metadata: undefined })
  assert.equal(await files.read('dir/a.txt'), 'hällo')
  assert.equal(await files.read('/home/user/dir/a.txt', { gzip: true }), 'hällo')
  assert.ok(await files.exists('dir') && !await files.exists('none'))
  await failure(files.read('none'), FileNotFoundError)
  await failure(files.list('none'), FileNotFoundError)
  await failure(files.getInfo('none'), FileNotFoundError)
  await failure(files.rename('none', 'other'), FileNotFoundError)
  await failure(files.list('dir/a.txt'), InvalidArgumentError)
  await failure(files.read('dir'), InvalidArgumentError)
  await failure(files.write('/proc/none', ''), SandboxError)

  const bytes = crypto.getRandomValues(new Uint8Array(1000))
  const contents = [bytes.buffer, new Blob([bytes]), new Blob([bytes]).stream()]
  for (const [i, data] of contents.entries()) {
    await files.write(`bytes${i}`, data)
    assert.deepEqual(await files.read(`bytes${i}`, { format: 'bytes' }), bytes)
  }
  await files.write('zipped', 'z'.repeat(1000), { gzip: true })
  assert.equal((await files.getInfo('zipped')).size, 1000)
  assert.equal(await (await files.read('zipped', { format: 'blob' })).text(), 'z'.repeat(1000))
  await files.write('empty', '')
  assert.equal(await files.read('empty'), '')
  assert.deepEqual(await files.read('empty', { format: 'bytes' }), new Uint8Array(0))
  const several = await files.writeFiles([{ path: 'b 1+', data: '1' }, { path: '/tmp/ü2', data: new Blob(['2']) }])
  assert.deepEqual(several.map((f) => f.path), ['/home/user/b 1+', '/tmp/ü2'])
  assert.equal(await files.read('/tmp/ü2'), '2')

  assert.ok(await files.makeDir('deep/er') && !await files.makeDir('deep/er'))
  const entries = new Map((await files.list('/home/user', { depth: 2 })).map((e) => [e.path, e]))
  assert.equal(entries.get('/home/user/deep/er').type, FileType.DIR)
  assert.equal(entries.get('/home/user/b 1+').size, 1)
  assert.equal((await files.rename('b 1+', 'deep/c1')).path, '/home/user/deep/c1')
  await sandbox.commands.run('ln -s c1 deep/link')
  const entry = await files.getInfo('deep/link')
  assert.deepEqual([entry.type, entry.symlinkTarget], [FileType.FILE, '/home/user/deep/c1'])
  const { mode, permissions, modifiedTime } = await files.getInfo('deep/c1')
  assert.deepEqual([mode, permissions], [0o644, '-rw-r--r--'])
  assert.ok(Math.abs(Date.now() - modifiedTime) < 600_000)
  await files.remove('deep')
  await files.remove('deep')
  assert.ok(!await files.exists('deep'))

  const piece = new Uint8Array(1 << 20).fill(120)
  let left = 20
  const big = new ReadableStream({ pull: (c) => left-- > 0 ? c.enqueue(piece) : c.close() })
  await files.write('big', big)
  assert.equal((await sandbox.commands.run('wc -c <big')).stdout.trim(), String(20 << 20))
  let size = 0
  for await (const chunk of await files.read('big', { format: 'stream' })) size += chunk.length
  assert.equal(size, 20 << 20)
  await (await files.read('big', { format: 'stream' })).cancel()
}

async function watches(sandbox) {
  const { files } = sandbox
  await files.makeDir('watched/sub')
  const [onEvent, seen] = event((e) => e.name === 'new' && e.type === FilesystemEventType.WRITE)
  const [onExit, ended] = event(() => true)
  const watch = await files.watchDir('watched', onEvent, { onExit })
  const [onDeep, deep] = event((e) => e.name === 'sub/new' && e.type === FilesystemEventType.REMOVE)
  const recursive = await files.watchDir('watched', onDeep, { recursive: true, timeoutMs: 0 })
  await files.write('watched/new', 'x')
  await files.write('watched/sub/new', 'x')
  await files.remove('watched/sub/new')
  await Promise.all([seen, deep])
  await watch.stop()
  await recursive.stop()
  await ended
  await failure(files.watchDir('none', () => {}), FileNotFoundError)
  await failure(files.watchDir('watched/new', () => {}), InvalidArgumentError)
}

async function urls(sandbox) {
  const text = 'signed ä'
  const form = new FormData()
  form.append('file', new Blob([text]), 'ignored')
  const at = 'urls/a b+c.txt'
  const put = await fetch(await sandbox.uploadUrl(at, { useSignatureExpiration: 60 }), { method: 'POST', body: form })
  assert.equal(put.status, 200, await put.clone().text())
  assert.deepEqual(await put.json(), [{ path: `/home/user/${at}`, name: 'a b+c.txt', type: 'file' }])
  for (const options of [{}, { useSignatureExpiration: 60 }, { user: 'user' }]) {
    const got = await fetch(await sandbox.downloadUrl(at, options))
    assert.deepEqual([got.status, await got.text()], [200, text])
  }
  const named = new FormData()
  named.append('file', new Blob(['1']), 'urls/named')
  assert.equal((await fetch(await sandbox.uploadUrl(), { method: 'POST', body: named })).status, 200)
  assert.equal(await sandbox.files.read('urls/named'), '1')

  const url = await sandbox.downloadUrl(at)
  const refused = [
    [await sandbox.downloadUrl(at, { useSignatureExpiration: -1 }), 'GET', 401, 'signature is already expired'],
    [url.replace('a+b', 'other'), 'GET', 401, 'invalid signature'], [url, 'POST', 401, 'invalid signature'],
    [await sandbox.downloadUrl('none'), 'GET', 404, ''],
  ]
  for (const [url, method, status, message] of refused) {
    const got = await fetch(url, { method })
    const body = await got.json()
    assert.equal(got.status, status, `${method} ${url}`)
    assert.ok(body.code === status && body.message.includes(message), JSON.stringify(body))
  }
}

async function pauses() {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000, lifecycle: { onTimeout: 'pause', autoResume: true } })
  try {
    const { pid } = await sandbox.commands.run('exec sleep 1000', { background: true })
    await sandbox.pause()
    assert.ok(!await sandbox.isRunning())
    assert.equal((await sandbox.getInfo()).state, 'paused')
    assert.deepEqual((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).map((s) => s.sandboxId), [sandbox.sandboxId])
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 300_000 })
    assert.ok(await again.isRunning())
    assert.ok((await again.commands.list()).some((p) => p.pid === pid), 'its program does not go on')
    await again.pause()
    assert.equal((await sandbox.commands.run('echo woken')).stdout, 'woken\n')
  } finally {
    assert.ok(await sandbox.kill())
  }
}

async function code() {
  const sandbox = await Interpreter.create({ timeoutMs: 120_000, envs: { S: 'of the sandbox' } })
  try {
    const done = await sandbox.runCode("x = 1\nprint('hello')\nx + 1")
    assert.deepEqual([done.logs.stdout, done.text, done.error, done.executionCount], [['hello\n'], '2', undefined, 1])
    assert.equal((await sandbox.runCode('x')).text, '1')
    assert.equal((await sandbox.runCode("import os; os.environ['S'] + os.environ['V']", { envs: { V: 'v' } })).text, 'of the sandboxv')

    const said = { out: '', err: '', results: [], errors: [] }
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const failed = await sandbox.runCode(`import base64, sys
print('a'); print('ä'); print('e', file=sys.stderr)
class Picture:
    def _repr_png_(self): return base64.b64decode('${png}')
    def _repr_html_(self): return '<b>picture</b>'
display(Picture())
1/0`, {
      onStdout: (m) => { said.out += m.line }, onStderr: (m) => { said.err += m.line }, onResult: (r) => { said.results.push(r) }, onError: (e) => { said.errors.push(e) },
    })
    assert.deepEqual([said.out, said.err], ['a\nä\n', 'e\n'])
    assert.deepEqual([failed.error.name, failed.error.value, said.errors], ['ZeroDivisionError', 'division by zero', [failed.error]])
    assert.ok(failed.error.traceback.includes('1/0'), failed.error.traceback)
    assert.deepEqual(said.results, failed.results)
    const main = await sandbox.runCode('Picture()')
    for (const picture of [failed.results[0], main.results[0]]) {
      assert.deepEqual([picture.png, picture.html], [png, '<b>picture</b>'])
      assert.deepEqual(picture.formats().sort(), ['html', 'png'])
    }
    assert.ok(main.results[0].isMainResult && !failed.results[0].isMainResult)
    assert.equal((await sandbox.runCode('def :')).error.name, 'SyntaxError')

    const one = await sandbox.createCodeContext({ cwd: '/tmp' })
    assert.deepEqual([one.language, one.cwd], ['python', '/tmp'])
    assert.equal((await sandbox.runCode('x', { context: one })).error.name, 'NameError')
    assert.equal((await sandbox.runCode('import os; y = 2; os.getcwd()', { context: one })).text, '/tmp')
    assert.ok((await sandbox.listCodeContexts()).some((c) => c.id === one.id))
    await sandbox.restartCodeContext(one)
    assert.equal((await sandbox.runCode('y', { context: one })).error.name, 'NameError')
    await sandbox.removeCodeContext(one.id)
    await failure(sandbox.runCode('1', { context: one }), NotFoundError)
    await failure(sandbox.removeCodeContext(one.id), NotFoundError)

    for (const [language, text] of [['js', 'console.log(1 + 2)'], ['ts', 'const n: number = 3; console.log(n)'], ['bash', 'echo $((1+2))']]) {
      const done = await sandbox.runCode(text, { language })
      assert.equal(done.logs.stdout.join(''), '3\n', `${language}: ${JSON.stringify(done)}`)
    }
    await failure(sandbox.runCode('1', { language: 'cobol' }), SandboxError)

    await failure(sandbox.runCode('import time; time.sleep(60)', { timeoutMs: 1000 }), TimeoutError)
    assert.equal((await sandbox.runCode('x')).text, '1', 'the state has not outlived the time-out')
    assert.equal((await sandbox.commands.run('echo both')).stdout, 'both\n')
    const [onStdout, begun] = event(() => true)
    const cut = failure(sandbox.runCode("print('begun'); time.sleep(60)", { onStdout }), TimeoutError)
    await begun
    await sandbox.kill()
    await cut
    await failure(sandbox.runCode('1'), TimeoutError)
  } finally {
    await sandbox.kill()
  }
}

await Promise.all([life(), refusals(), pages(), pauses(), code(), (async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000 })
  try {
    for (const flow of [commands, terminals, files, watches, urls]) await flow(sandbox)
    const endless = await sandbox.commands.run('sleep 60', { background: true })
    await sandbox.kill()
    await failure(endless.wait(), TimeoutError)
  } finally {
    await sandbox.kill()
  }
})()])
process.exit() // the SDKs' timers go on for a minute
