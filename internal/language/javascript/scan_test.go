package javascript

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	{"const fs = require('fs'); fs.readFile('x')", "use fs; import fs; call require; call fs.readFile"},
	{"import fs from 'node:fs'; fs.rm('x')", "use fs; import fs; call fs.rm"},
	{"import {exec as e} from \"child_process\"; e('x')", "use child_process.exec; import child_process; call child_process.exec"},
	{"import cp, {exec} from 'child_process'; exec('x'); cp.spawn('y')", "use child_process; use child_process.exec; import child_process; call child_process.exec; call child_process.spawn"},
	{"import * as cp from 'child_process'; cp.exec('x')", "use child_process; import child_process; call child_process.exec"},
	{"import 'fs'", "import fs"},
	{"export {exec} from 'child_process'", "use child_process.exec; import child_process"},
	{"export * from 'fs'", "import fs"},
	{"await import('fs')", "import fs; call import"},
	{"(await import('fs')).readFile('x')", "import fs; call import; call fs.readFile"},
	{"import('fs').then(m => m.rm('x'))", "import fs; call import; call fs.rm"},
	{"require(`fs`)", "import fs; call require"},
	{"require('f' + `s`)", "import fs; call require"},
	{"const m = 'child_' + 'process'; require(`${m}`).exec('x')", "import child_process; call require; call child_process.exec"},
	{"require(x)", "call require; computed import; use x"},
	{"import(x + 'y')", "call import; computed import; use x"},
	{"process.binding('fs')", "import fs; call process.binding"},
	{"process['bind' + 'ing']('spawn_sync')", "import child_process; call process.binding"},
	{"const u = 'http://x'; require('fs') // 'fs'", "import fs; call require"},
	{"const {createRequire} = require('module'); const r = createRequire(import.meta.url); r('fs').rm('x')", "use module.createRequire; import module; call require; use require; call module.createRequire; use import.meta.url; import fs; call require; call fs.rm"},
	{"process.getBuiltinModule('fs').rm('x')", "import fs; call process.getBuiltinModule; call fs.rm"},
	{"module.constructor._load('fs')", "import fs; call module.constructor._load"},
	{"global.process.mainModule.require('fs')", "import fs; call process.mainModule.require"},
	{"globalThis['eval']('require(\"fs\")')", "call eval; import fs; call require"},
	{"(0, eval)('x')", "call eval; use x"},
	{"eval?.(code)", "call eval; computed code; use code"},
	{"new Function('a', 'return require(\"fs\")')", "call Function; use a; import fs; call require"},
	{"(() => {}).constructor('return process')().exit()", "call constructor; computed code; use process; computed name; call process.exit"},
	{"[].constructor.constructor('x')()", "call constructor; computed code; use x"},
	{"const F = (async () => {}).constructor; new F(code)", "call constructor; computed code; use code"},
	{"setTimeout(\"require('fs')\", 1); setTimeout(() => {}, 1)", "call setTimeout; import fs; call require; call setTimeout"},
	{"const vm = require('vm'); vm.runInNewContext('process.exit()')", "use vm; import vm; call require; call vm.runInNewContext; call process.exit"},
	{"Reflect.get(process, 'binding')('fs')", "import fs; call Reflect.get; use process; use process.binding"},
	{"const {exec: run, ['spa' + 'wn']: s} = require('child_process'); run('x'); s('y')", "use child_process.exec; use child_process.spawn; import child_process; call require; call child_process.exec; call child_process.spawn"},
	{"const cp = require('child_process'); cp[x]('y'); cp['exec']('z')", "use child_process; import child_process; call require; use child_process; computed name; use x; call child_process.exec"},
	{"const r = require; r('fs')", "use require; use require; import fs; call require"},
	{"[require][0]('fs')", "use require; computed import"},
	{"(r => r('fs'))(require)", "use require; computed import"},
	{"\\u0072equire('\\x66\\u{73}')", "import fs; call require"},
	{"// x\u2028require('fs')", "import fs; call require"},
	{"a = {} / require('fs') / 1", "use a; import fs; call require"},
	{"if (x) /require('fs')/.test(y)", "use x; use y"},
	{"`${require('fs')}`", "import fs; call require"},
	{"`${`${eval('x')}`} require('os')`", "call eval; use x"},
	{"require.call(null, 'fs'); Reflect.apply(require, null, ['fs'])", "import fs; call require; call Reflect.apply; use require"},
	{"import('data:text/javascript,import \"fs\"')", "call import; import fs; computed code"},
	{"with (process) binding('fs')", "computed name; use process; call binding"},
	{"function f(require) { require('fs') } require('os')", "import os; call require"},
	{"class A { eval(x) { return this.eval(x) } }", ""},
	{"x = {eval(y) {}, require: 1}; x.eval(1)", "use x; call x.eval"},
	{"for (let eval of []) {} eval('1')", "call eval"},
	{"require('a')\neval('x')\n{}", "import a; call require; call eval; use x"},
	{"x = 1 /2; y = 'a' /require('fs')/ 2", "use x; use y; import fs; call require"},
	{"a++ / require('fs') / 1", "use a; import fs; call require"},
	{"x = function () {} / require('fs') / 1", "use x; import fs; call require"},
	{"if (a) {} /require('fs')/.test(b)", "use a; use b"},
	{"const {exec} = require('child_process'), e = exec; e('x')", "use child_process.exec; import child_process; call require; use child_process.exec; use child_process.exec; call child_process.exec"},
	{"let f = x => x; f = require; f(y)", "use require; use require; use require; call require; computed import; use y"},
	{"var require; require('fs')", "use require; import fs; call require"},
	{"var require = require || x; require('fs')", "use require; use require; use x; import fs; call require"},
	{"const m = 'fs'; { const m = 'os'; require(m) } require(m)", "import os; call require; import fs; call require"},
	{"let m = 'path'; m = 'fs'; require(m)", "call require; computed import"},
	{"let m = 'f'; m += 's'; require(m)", "call require; computed import"},
	{"require(['f', 's'].join(''))", "import fs; call require"},
	{"import {default as cp, 'exec' as run} from \"node:child_process\"; run('x'); cp.fork('y')", "use child_process; use child_process.exec; import child_process; call child_process.exec; call child_process.fork"},
	{"import * as process from 'node:process'; process.dlopen(m, 'x')", "use process; import process; call process.dlopen; use m"},
	{"process.dlopen(m, 'x'); process.env.HOME; process.env[x]; process[x]()", "call process.dlopen; use m; use process.env.HOME; use process.env; use x; use process; computed name; use x"},
	{"const w = new Worker('require(\"fs\")', {eval: true}); import {Worker} from 'worker_threads'", "call worker_threads.Worker; import fs; call require; use worker_threads.Worker; import worker_threads"},
	{"Function`return process`().exit()", "call Function; computed code"},
	{"new (require('vm').Script)('require(\"os\")')", "import vm; call require; call vm.Script; import os; call require"},
	{"module.require('fs'); require.main.require('os'); module.children[0].require('net')", "import fs; call module.require; import os; call require.main.require; import net; call module.children.0.require"},
	{"const {mainModule: {require: r}} = process; r('fs')", "use process.mainModule.require; use process; import fs; call process.mainModule.require"},
	{"const {['ev' + 'al']: e} = globalThis; e(code)", "use eval; use globalThis; call eval; computed code; use code"},
	{"const {[k]: f} = process; f('fs')", "use k; computed name; use process"},
	{"Object.getOwnPropertyDescriptor(process, 'binding').value('fs')", "call Object.getOwnPropertyDescriptor; use process; use process.binding; call process.binding.value"},
	{"(function (r) { r('fs') })(require); [].map(eval)", "use require; computed import; use eval"},
	{"'use strict'; exports.r = require; const o = {require}; function g() { return require }", "use exports.r; use require; computed import; use require; computed import; use require; computed import"},
	{"typeof require === 'function' && require.main === module && require.resolve('x')", "use require; use require.main; use module; call require.resolve"},
	{"setTimeout('a' + b, 1); setInterval(`x${y}`); setTimeout(f, 2)", "call setTimeout; computed code; use b; call setInterval; computed code; use y; call setTimeout; use f"},
	{"class A { constructor() { this.exec = 1; } static eval() {} copy() { return new this.constructor(this.x) } get require() { return 1 } }", ""},
	{"model.eval(); re.exec('x'); my.require('fs'); obj.Function('x'); $.constructor.name", "call model.eval; call re.exec; call my.require; call obj.Function"},
	{"// require('fs')", ""},
	{"/* import 'fs' */ \"import 'os'\"; 'require(\"os\")'; `require('net')`; /eval('x')/; x = { 'fs': 1, eval: 2 }", "use x"},
	{"#!/usr/bin/env node\nrequire(\"fs\")", "import fs; call require"},
	{"import x from 'osx'; require('./fs'); require('fs2'); requires('fs')", "use osx; import osx; import ./fs; call require; import fs2; call require; call requires"},
	{"<!-- require(\"fs\")\n--> eval(x)", "import fs; call require; call eval; use x; computed code"},
	{"x --> 0; eval(y)", "use x; call eval; computed code; use y"},
	{"const s = \"\\u{66}s\"; import(s)", "import fs; call import"},
	{"im\\u0070ort('fs')", "import fs; call import"},
	{"e\\u{76}al('x')", "call eval; use x"},
	{"a?.b?.['c']; eval?.('fork()'); globalThis?.['ev' + `al`]?.(c)", "use a.b.c; call eval; call fork; call eval; computed code; use c"},
	{"var s = \"a\\\nb\"; require(\"fs\")", "import fs; call require"},
	{"label: { eval('x') } switch (x) { case 'a': { eval('y') } default: eval('z') }", "call eval; use x; use x; call eval; use y; call eval; use z"},
	{"x = a ? { b: eval } : { c() { eval('d') } }", "use x; use a; use eval; call eval; use d"},
	{"async function f() { for await (const x of y) { await import(x) } } f`x`", "use y; call import; computed import"},
	{"import def, * as ns from 'os'; ns.cpus(); def.arch()", "use os; use os; import os; call os.cpus; call os.arch"},
	{"export { default as x } from 'fs'; export * as y from 'net'; export const z = 1, w = require('os')", "use fs.default; import fs; import net; use os; import os; call require"},
	{"import('fs').then(({rm}) => rm('x')); import('fs').then(async function (m) { m.rm() })", "import fs; call import; use fs.rm; call fs.rm; import fs; call import; use fs; call fs.rm"},
	{"(async () => { const {exec: e} = await import('child_process'); e('x') })()", "use child_process.exec; import child_process; call import; call child_process.exec"},
	{"const cp = await import('child_process'); const {spawn} = cp.default; spawn('x')", "use child_process; import child_process; call import; use child_process.spawn; use child_process; call child_process.spawn"},
	{"a = b\n/require(\"fs\")/g.exec(c)", "use a; use b; import fs; call require; call g.exec; use c"},
	{"const r = 1_000n / 0x1F / .5e-3; x = 1..constructor.constructor('y')()", "use x; call constructor; computed code; use y"},
	{"WebAssembly.instantiate(x); new SharedArrayBuffer(1); Deno.run(); Bun.spawn()", "call WebAssembly.instantiate; use x; call SharedArrayBuffer; call Deno.run; call Bun.spawn"},
	{"function f(process, {global}, [eval], ...module) { process.exit(); global.x(); eval('1'); module.y() }", ""},
	{"try {} catch (eval) { eval('x') } eval('y')", "call eval; use y"},
	{"for (const require of x) { require('fs') } require('os')", "use x; import os; call require"},
	{"[require => require('fs'), require('os')]", "import os; call require"},
	{"x => { var eval = 1 }; eval('z')", "call eval; use z"},
	{"(eval)('a'); (0, globalThis.eval)('b'); (1, (2, eval))('c')", "call eval; use a; call eval; use b; call eval; use c"},
	{"const g = globalThis, {process: p} = g; p.binding(x)", "use globalThis; use globalThis; use process; use globalThis; call process.binding; computed import; use x"},
	{"self['ev' + 'al'](atob('x')); this.eval('x')", "call eval; computed code; call atob"},
	{"vm.runInThisContext(x)", "call vm.runInThisContext; computed code; use x"},
	{"process.mainModule.constructor._load('fs'); new module.constructor()._compile('x', '')", "call process.mainModule.constructor._load; call module.constructor; call module._compile; use x"},
	{"import fs = require('fs')", "use fs; import fs; call require"},
	{"<div>{x}</div>", "use div; use x; problem"},
}

func TestScan(t *testing.T) { lextest.Run(t, scanCode, scans) }

func TestScanHostile(t *testing.T) {
	lextest.Hostile(t, scanCode, "(", "{", "[", "`${", "a(", "x=>", "a.b[", "eval(", "\"", "/", "require(", "let a=b,", "function f(){", "+a", "class A{", "a?b:", "<!--", "\\\\u0065", "async ", "{a:{b:", "import(", "x.y", "[a]=[", "if(a)", "of ", "f`", "(0,", "`", "a[", "`${}a}``${b`", "[]", "[!]")
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scanCode, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scanCode, "const fs = require('fs')\nasync function main(a, b) {\n  const list = [1, 2, 3].map(x => x * `${a}${b}`.length) // sums\n  for (const {name, value: v = 2} of list) console.log(name, v / 2, /a[/]b/.test(name))\n  return fs.promises.readFile(\"x\" + b, {encoding: 'utf8'})\n}")
}

func TestLibraryName(t *testing.T) {
	for canonical, want := range map[string]string{"lodash": "lodash", "React@18.2.0": "react", "@types/node@20": "@types/node", "@Scope/Name": "@scope/name", "chalk@^5": "chalk"} {
		if got := libraryName(canonical); got != want {
			t.Errorf("%q: %q", canonical, got)
		}
	}
}
