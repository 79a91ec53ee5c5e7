// The driver of JavaScript kernels: requests on descriptor 3, replies on 4.
'use strict';
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const inspector = require('node:inspector');
const { setTimeout: pause } = require('node:timers/promises');
const { createRequire } = require('node:module');
const { pathToFileURL } = require('node:url');

const longest = 1 << 20; // characters of one value
let cell = null; // the one that runs: {id, mark, stdin, code, interrupt, name}
let count = 0;
let last = 0; // the id of the cell that was last begun
let told = 0; // how many requests to interrupt it came: with each but the first comes a signal
let broken = 0; // how many of those signals broke it
let asked = null; // resolves with the answer to an input event

function writeAll(fd, data) {
  let rest = Buffer.from(data);
  while (rest.length > 0) rest = rest.subarray(fs.writeSync(fd, rest));
}
// Blocking, so that what was printed is out before a cell's end, and before the process's.
// An interrupt can come anywhere, and a stream that it broke off would never write again:
// these keep no state.
for (const [fd, stream] of [[1, process.stdout], [2, process.stderr]]) {
  stream._handle?.setBlocking?.(true);
  stream.setMaxListeners(0);
  stream.write = (chunk, encoding, done) => {
    writeAll(fd, typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk);
    const then = typeof encoding === 'function' ? encoding : done;
    if (then) process.nextTick(then);
    return true;
  };
}

const send = (event) => writeAll(4, JSON.stringify(event) + '\n');
const cut = (text, most = longest) => (text.length > most ? text.slice(0, most) + '… (cut)' : text);
const show = (value, options) => {
  try {
    return cut(util.inspect(value, options));
  } catch (e) {
    return `[a value that cannot be shown: ${e}]`;
  }
};

// --- requests -----------------------------------------------------------------
const requests = new net.Socket({ fd: 3, readable: true, writable: false });
let buffered = Buffer.alloc(0);
let chunks = [];
const queue = [];

function take(chunk) {
  let at;
  while ((at = chunk.indexOf(10)) >= 0) {
    chunks.push(chunk.subarray(0, at));
    queue.push(JSON.parse(Buffer.concat(chunks).toString()));
    chunks = [];
    chunk = chunk.subarray(at + 1);
  }
  if (chunk.length > 0) chunks.push(chunk);
}
function pump() {
  while (queue.length > 0) {
    if (queue[0].op === 'input') {
      const answer = queue.shift();
      if (answer.id !== cell?.id) continue; // of a cell that is over
      const resolve = asked;
      asked = null;
      if (answer.interrupted) cell.interrupt();
      if (resolve) resolve(answer.eof ? null : answer.text);
      continue;
    }
    if (queue[0].op === 'interrupt') {
      const { id } = queue.shift();
      if (id === last) told++;
      if (id === cell?.id) cell.interrupt();
      continue;
    }
    if (cell) return;
    serve(queue.shift());
  }
}
requests.on('data', (chunk) => { take(chunk); pump(); });
requests.on('end', () => process.exit(0));

// ask asks for a line of input; null is the end of input.
function ask(prompt) {
  if (!cell || !cell.stdin) return Promise.resolve(null);
  send({ event: 'input', id: cell.id, prompt, password: false });
  return new Promise((resolve) => { asked = resolve; });
}
function askSync(prompt) {
  if (!cell || !cell.stdin) return null;
  let answer;
  send({ event: 'input', id: cell.id, prompt, password: false });
  requests.pause();
  requests._handle.setBlocking(true);
  try {
    const buf = Buffer.alloc(65536);
    const others = [];
    while (answer === undefined) {
      const n = fs.readSync(3, buf);
      if (n === 0) process.exit(0);
      take(Buffer.from(buf.subarray(0, n)));
      for (let r; (r = queue.shift()); ) {
        if (r.op !== 'input' && r.op !== 'interrupt') others.push(r);
        else if (r.id === cell.id) answer = r.op === 'input' ? r : { interrupted: true };
      }
    }
    queue.push(...others);
  } finally {
    listen();
  }
  if (answer.interrupted) throw interruption();
  return answer.eof ? null : answer.text;
}
const interruption = () => Object.assign(new Error('interrupted'), { code: 'ERR_SCRIPT_EXECUTION_INTERRUPTED' });
function listen() {
  requests._handle.setBlocking(false);
  requests.resume();
}

// --- what cells see -----------------------------------------------------------
const here = path.join(process.cwd(), 'cell.js');
const cellRequire = createRequire(here);
const define = (name, value) =>
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
define('require', cellRequire);
define('module', { exports: {}, require: cellRequire, filename: here });
define('exports', globalThis.module.exports);
define('prompt', (text = '') => askSync(String(text)));

const esm = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER
  ? new vm.Script('(s, o) => import(s, o)', { filename: here, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }).runInThisContext()
  : null;
async function load(specifier, options) {
  specifier = String(specifier);
  if (/^\.{0,2}\//.test(specifier)) return import(pathToFileURL(path.resolve(process.cwd(), specifier)).href, options);
  if (esm) {
    try {
      return await esm(specifier, options);
    } catch (e) {
      if (e?.code !== 'ERR_MODULE_NOT_FOUND' || !String(e.message).includes(`'${specifier}'`)) throw e;
    }
  }
  // Installed libraries lie where only require looks.
  const found = cellRequire.resolve(specifier);
  return import(path.isAbsolute(found) ? pathToFileURL(found).href : found, options);
}
const helper = { load, meta: { url: pathToFileURL(here).href, filename: here, dirname: process.cwd() } };
Object.defineProperty(globalThis, '__llmsandbox', { value: helper });
const initial = new Set(Object.getOwnPropertyNames(globalThis));

const { Readable } = require('node:stream');
let stdin = null;
Object.defineProperty(process, 'stdin', {
  configurable: true,
  get() {
    if (!stdin || stdin.destroyed || stdin.readableEnded) {
      stdin = new Readable({ read() { ask('').then((text) => this.push(text === null ? null : text + '\n')); } });
      stdin.fd = 0;
      stdin.setEncoding('utf8');
    }
    return stdin;
  },
});

process.on('uncaughtException', (e) => writeAll(2, `Uncaught ${trace(e)}\n`));
process.on('unhandledRejection', (e) => writeAll(2, `Uncaught (in promise) ${trace(e)}\n`));

// --- evaluation ---------------------------------------------------------------
const session = new inspector.Session();
session.connect();
const post = (method, params) => new Promise((resolve, reject) => session.post(method, params, (e, r) => (e ? reject(e) : resolve(r))));
let globalId;

// Node's thread that waits for SIGINT starts and ends with each script that SIGINT breaks, and
// a signal that it has not seen at its end breaks the next script instead; between the two,
// SIGINT ends the process. So the thread is kept. A signal that breaks nothing comes to nothing:
// what waits is told by a request, which has the cell's id.
const watchdog = (() => {
  try {
    const { startSigintWatchdog: start, stopSigintWatchdog: stop, watchdogHasPendingSigint: pending } = process.binding('contextify');
    start();
    return { start, stop, pending };
  } catch {
    process.on('SIGINT', () => {}); // a Node without it
    return null;
  }
})();

// guarded runs f so that SIGINT breaks it, even out of an endless loop.
const guard = new vm.Script('__llmsandbox.f()', { filename: 'node:kernel' });
function guarded(f) {
  let result;
  helper.f = () => { result = f(); };
  // The code's own handlers of SIGINT, which vm sets aside, replace the thread's.
  const handled = process.listenerCount('SIGINT') > 0;
  if (handled) watchdog?.stop();
  try {
    guard.runInThisContext({ breakOnSigint: true, displayErrors: false });
  } catch (e) {
    if (interrupted(e)) broken++;
    throw e;
  } finally {
    const handles = process.listenerCount('SIGINT') > 0;
    if (handles && !handled) watchdog?.stop();
    if (handles || handled) watchdog?.start();
  }
  return result;
}
const interrupted = (e) => e?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';

// value turns what the inspector describes into the value itself.
function value(remote) {
  let got;
  helper.take = (v) => { got = v; };
  const { objectId, unserializableValue, value, type } = remote;
  const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : type === 'undefined' ? {} : { value };
  session.post('Runtime.callFunctionOn', { objectId: globalId, functionDeclaration: 'function(v){__llmsandbox.take(v)}', arguments: [argument] });
  return got;
}
// evaluate calls back when the expression has a value, which may be at once.
const evaluate = (expression, options, done) =>
  session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true, objectGroup: 'cell', ...options }, done);
// peek is the value of an expression without side effects, in an object, or null.
function peek(expression) {
  let got = null;
  evaluate(expression, { throwOnSideEffect: true, awaitPromise: false, replMode: false, silent: true }, (e, r) => {
    if (!e && !r.exceptionDetails) got = { value: value(r.result) };
  });
  return got;
}

// trace is an error as Node shows it, without our own frames.
function trace(e) {
  const lines = show(e).split('\n');
  return lines.filter((l) => !/^\s+at .*(node:inspector|node:kernel|kernel\.cjs|node:vm|node:net|node:internal\/(stream|process))/.test(l)).join('\n');
}

// settle waits until a signal for the last cell that broke nothing has come to Node's thread,
// which on a machine under load can be later than the next cell.
async function settle() {
  await new Promise(setImmediate);
  for (let i = 0; i < 100 && told - 1 > broken && watchdog && !watchdog.pending(); i++) await pause(5);
  told = broken = 0;
}

// strip makes JavaScript of a cell, where it is none.
const strip = process.argv[2] ? require(process.argv[2]).cell : (code) => code;

async function run(req) {
  const name = `cell[${++count}]`;
  const done = { event: 'done', id: req.id, status: 'ok', count };
  const current = (cell = { ...req, name, done, interrupt() {} });
  await settle();
  last = req.id;
  let details;
  try {
    const code = await rewrite(strip(req.code, name));
    let resolve, reject;
    const evaluated = new Promise((yes, no) => { resolve = yes; reject = no; });
    current.interrupt = () => reject(interruption());
    guarded(() => evaluate(`${code}\n//# sourceURL=${name}`, {}, (e, r) => (e ? reject(e) : resolve(r))));
    const result = await evaluated;
    details = result.exceptionDetails;
    guarded(() => {
      const v = value(result.result);
      if (details && interrupted(v)) throw v;
      if (details) {
        const isError = v instanceof Error || util.types.isNativeError(v);
        const named = (p, other) => { try { return cut(String(v[p] ?? other), 1e5); } catch { return other; } };
        done.status = 'error';
        done.error = isError
          ? { name: named('name', 'Error'), message: named('message', ''), traceback: trace(v) }
          : { name: 'Uncaught', message: show(v), traceback: `Uncaught ${show(v)}\n    at ${name}` };
        if (isError && details.scriptId && /SyntaxError/.test(done.error.name) && !/ at /.test(done.error.traceback.split('\n')[1] ?? '')) {
          const line = details.lineNumber + 1;
          const text = req.code.split('\n')[line - 1] ?? '';
          done.error.traceback = `${name}:${line}:${details.columnNumber + 1}\n${text}\n${' '.repeat(Math.min(details.columnNumber, 200))}^\n${done.error.traceback}`;
        }
      } else if (v !== undefined) {
        done.value = { 'text/plain': show(v) };
      }
    });
  } catch (e) {
    delete done.value;
    if (interrupted(e)) {
      listen(); // which a question that was broken off has not done
      done.status = 'interrupted';
      done.error = { name: 'Interrupted', message: 'the cell was interrupted', traceback: '' };
    } else {
      done.status = 'error';
      done.error = { name: e?.name ?? 'Error', message: String(e?.message ?? e), traceback: trace(e) };
    }
  }
  session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
  asked = null;
  finish(done);
  pump();
}

function finish(done) {
  const mark = '\0' + cell.mark;
  cell = null;
  writeAll(1, mark);
  writeAll(2, mark);
  send(done);
}

// Whatever exits the process comes through here last.
const reallyExit = process.reallyExit;
process.reallyExit = function (code) {
  if (cell) finish({ ...cell.done, status: 'exit', exit_code: Number(code) & 255 });
  reallyExit.call(process, code);
};

// --- import -------------------------------------------------------------------
// mask blanks comments, strings, templates and regular expressions out of a source.
function mask(code) {
  const out = code.split('');
  const blank = (from, to) => { for (let i = from; i < to && i < out.length; i++) if (out[i] !== '\n') out[i] = ' '; };
  const braces = []; // of templates: how deep each ${ is
  let depth = 0;
  let before = ''; // the last significant character or word
  for (let i = 0; i < code.length; ) {
    const c = code[i];
    let end = i + 1;
    const template = () => {
      while (end < code.length && code[end] !== '`') {
        if (code[end] === '\\') end++;
        else if (code[end] === '$' && code[end + 1] === '{') { braces.push(depth++); end += 2; return; }
        end++;
      }
      end++;
    };
    if (c === '/' && code[i + 1] === '/') {
      while (end < code.length && code[end] !== '\n') end++;
      blank(i, end);
    } else if (c === '/' && code[i + 1] === '*') {
      end = (code.indexOf('*/', i + 2) + 1 || code.length) + 1;
      blank(i, end);
    } else if (c === '"' || c === "'") {
      while (end < code.length && code[end] !== c && code[end] !== '\n') end += code[end] === '\\' ? 2 : 1;
      end++;
      blank(i + 1, end - 1);
      before = c;
    } else if (c === '`') {
      template();
      blank(i, end);
      before = c;
    } else if (c === '/' && /^$|[=(,:;!&|?{}[+*%~^<>-]$|^(return|typeof|case|in|of|delete|void|throw|new|await|yield|else|do)$/.test(before)) {
      let inClass = false;
      while (end < code.length && code[end] !== '\n' && (inClass || code[end] !== '/')) {
        if (code[end] === '\\') end++;
        else if (code[end] === '[') inClass = true;
        else if (code[end] === ']') inClass = false;
        end++;
      }
      end++;
      blank(i, end);
      before = '/re/ ';
    } else if (c === '{') {
      depth++;
      before = c;
    } else if (c === '}') {
      depth--;
      before = c;
      if (braces.length > 0 && braces[braces.length - 1] === depth) {
        braces.pop();
        template();
        blank(i, end);
        before = '`';
      }
    } else if (/[\w$]/.test(c)) {
      while (end < code.length && /[\w$]/.test(code[end])) end++;
      before = code.slice(i, end);
    } else if (!/\s/.test(c)) {
      before = c;
    }
    i = end;
  }
  return out.join('');
}

const staticImport = /(^|[;\n}])([ \t]*)import(?=[\s*{"'])([^;"'()]*?)(["'])( *)\4([ \t]*(?:with|assert)\s*\{[^}]*\})?/g;

// rewrite turns what only modules may say into what a cell may, on the same lines.
async function rewrite(code) {
  if (!/\bimport\b/.test(code)) return code;
  const masked = mask(code);
  const edits = [];
  for (const m of masked.matchAll(staticImport)) {
    const from = m.index + m[1].length + m[2].length;
    const quote = m.index + m[0].indexOf(m[4], m[1].length + m[2].length + 6);
    const specifier = code.slice(quote, quote + m[5].length + 2);
    const options = m[6] ? `, {with: ${code.slice(m.index + m[0].length - m[6].length, m.index + m[0].length).replace(/^\s*(with|assert)/, '')}}` : '';
    const call = `await __llmsandbox.load(${specifier}${options})`;
    const clause = m[3].replace(/\bfrom\s*$/, '').trim();
    const lines = '\n'.repeat(code.slice(from, m.index + m[0].length).split('\n').length - 1);
    edits.push([from, m.index + m[0].length, (clause ? bind(clause, call, edits.length) : `${call}, undefined`) + lines]);
  }
  for (const m of masked.matchAll(/(?<![\w$.])import(\s*\(|\s*\.\s*meta\b)/g)) {
    edits.push([m.index, m.index + m[0].length, m[1].endsWith('(') ? '__llmsandbox.load(' : '__llmsandbox.meta']);
  }
  edits.sort((a, b) => b[0] - a[0]);
  for (const [from, to, text] of edits) code = code.slice(0, from) + text + code.slice(to);
  return code;
}

// bind is the declaration of an import's names.
function bind(clause, call) {
  const names = [];
  const named = clause.match(/\{([\s\S]*)\}/);
  const space = clause.match(/\*\s*as\s+([\w$]+)/);
  const first = clause.match(/^([\w$]+)/);
  if (first) names.push(`default: ${first[1]}`);
  for (const n of named ? named[1].split(',') : []) {
    const [name, as] = n.trim().split(/\s+as\s+/);
    if (name) names.push(as ? `${name}: ${as}` : name);
  }
  if (!space) return `const {${names.join(', ')}} = ${call}`;
  return first ? `const ${space[1]} = ${call}, {${names.join(', ')}} = ${space[1]}` : `const ${space[1]} = ${call}`;
}

// --- requests beside cells -------------------------------------------------
function lexical() {
  let names = [];
  session.post('Runtime.globalLexicalScopeNames', {}, (e, r) => { if (!e) names = r.names; });
  return [...new Set(names)];
}
const globals = () => Object.getOwnPropertyNames(globalThis).filter((n) => !initial.has(n));
const kind = (v) => (v === null ? 'null' : typeof v === 'object' ? v.constructor?.name ?? 'Object' : typeof v);
const forgotten = new Set();

function variables() {
  const list = [];
  for (const name of [...new Set([...lexical(), ...globals()])].sort()) {
    const got = peek(name);
    if (!got || (got.value === undefined && forgotten.has(name))) continue;
    list.push({ name, type: kind(got.value), value: cut(show(got.value, { depth: 1, breakLength: Infinity }), 200) });
  }
  return list;
}

const keywords = 'async await break case catch class const continue debugger default delete do else export extends false finally for function if import in instanceof let new null return static super switch this throw true try typeof undefined var void while with yield'.split(' ');

function complete(code, cursor) {
  const before = [...code].slice(0, cursor).join('');
  const m = before.match(/((?:[\p{ID_Start}$_][\p{ID_Continue}$]*\??\.)*)([\p{ID_Start}$_][\p{ID_Continue}$]*)?$/u);
  const [, chain, word = ''] = m;
  let names;
  if (chain) {
    const got = peek(chain.replace(/\??\.$/, ''));
    names = [];
    for (let o = got?.value; o !== null && o !== undefined; o = Object.getPrototypeOf(Object(o))) names.push(...Object.getOwnPropertyNames(Object(o)));
    names = names.filter((n) => /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(n));
  } else {
    names = [...lexical(), ...Object.getOwnPropertyNames(globalThis), ...keywords].filter((n) => n !== '__llmsandbox');
  }
  const matches = [...new Set(names)].filter((n) => n.startsWith(word)).sort().slice(0, 1000);
  return { matches, start: cursor - [...word].length, end: cursor };
}

function inspect(code, cursor) {
  const points = [...code];
  const before = points.slice(0, cursor).join('').match(/[\p{ID_Continue}$.]*$/u)[0];
  const after = points.slice(cursor).join('').match(/^[\p{ID_Continue}$]*/u)[0];
  const name = before + after;
  const got = /^[\p{ID_Start}$_]/u.test(name) && peek(name);
  if (!got) return '';
  const text = typeof got.value === 'function' ? Function.prototype.toString.call(got.value) : show(got.value, { depth: 1 });
  return cut(`${name}: ${kind(got.value)}\n${text}`, 1e5);
}

function reset() {
  // A lexical name cannot be taken back; declared again it is undefined.
  const names = lexical();
  for (const n of names) forgotten.add(n);
  if (names.length > 0) evaluate(`let ${names.join(', ')};`, {}, () => {});
  for (const n of globals()) {
    forgotten.add(n);
    if (!delete globalThis[n]) globalThis[n] = undefined;
  }
  for (const file of Object.keys(cellRequire.cache)) if (file !== __filename) delete cellRequire.cache[file];
  count = 0;
}

function serve(req) {
  if (req.op === 'run') { run(req); return; }
  const reply = { event: 'reply', id: req.id };
  try {
    guarded(() => {
      if (req.op === 'complete') Object.assign(reply, complete(req.code, req.cursor));
      else if (req.op === 'inspect') reply.text = inspect(req.code, req.cursor);
      else if (req.op === 'variables') reply.variables = variables();
      else if (req.op === 'reset') reset();
      else reply.error = `unknown request ${req.op}`;
    });
  } catch (e) {
    reply.error = interrupted(e) ? 'interrupted' : String(e);
  }
  send(reply);
}

session.post('Runtime.evaluate', { expression: 'globalThis' }, (e, r) => { globalId = r.result.objectId; });
send({ event: 'ready', language: process.argv[2] ? 'typescript' : 'javascript', version: process.versions.node, flavor: 'node' });
