package main

import (
	"maps"
	"slices"
)

// An insn is one instruction of classic BPF, a struct sock_filter.
type insn struct {
	code   uint16
	jt, jf uint8 // instructions to skip when a condition holds, or does not
	k      uint32
}

// A block is a piece of program that is entered at its start only and ends in a
// return on every path. Blocks therefore need neither labels nor shared tails:
// a decision is its condition, followed by one block and then the other.
type block []insn

// Instruction codes of <linux/bpf_common.h>.
const (
	opLoad = 0x20 // A = word at k of struct seccomp_data
	opAnd  = 0x54 // A &= k
	opJump = 0x05 // skip k instructions
	jmpEQ  = 0x15 // A == k
	jmpGE  = 0x35 // A >= k
	jmpSet = 0x45 // A & k != 0
	opRet  = 0x06
)

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// Verdicts and the errno values they carry.
const (
	retAllow  = 0x7fff0000
	retErrno  = 0x00050000
	retNotify = 0x7fc00000

	ePERM           = 1
	eINVAL          = 22
	eNOTTY          = 25
	eNOSYS          = 38
	eNOPROTOOPT     = 92
	ePROTONOSUPPORT = 93
	eOPNOTSUPP      = 95
	eAFNOSUPPORT    = 97
)

// allow lets the call through.
func allow() block { return block{{code: opRet, k: retAllow}} }

// errno has the call fail.
func errno(e uint32) block { return block{{code: opRet, k: retErrno | e}} }

// load reads a word of struct seccomp_data.
func load(offset uint32) []insn { return []insn{{code: opLoad, k: offset}} }

// arg reads the lower half of the n-th argument, counted from 0.
//
// Every argument the filter looks at but pointers is an int, an unsigned int or a umode_t in
// the kernel, which drops the upper half of the register. Looking at the upper
// half as well would be the classic hole: a denied value with a high bit set
// would compare unequal here and equal there.
func arg(n uint32) []insn { return load(offArgs + 8*n) }

// upper reads the upper half of the n-th argument, which matters for a pointer.
func upper(n uint32) []insn { return load(offArgs + 8*n + 4) }

// masked reads an argument's lower half and keeps the bits of mask.
func masked(n, mask uint32) []insn { return append(arg(n), insn{code: opAnd, k: mask}) }

// cond runs pre, then yes or no by the comparison of the accumulator with k.
func cond(pre []insn, op uint16, k uint32, yes, no block) block {
	out := append(block{}, pre...)
	if len(yes) <= 0xff {
		out = append(out, insn{code: op, jf: uint8(len(yes)), k: k})
	} else {
		// A conditional jump reaches 255 instructions, an unconditional one all.
		out = append(out, insn{code: op, jf: 0, jt: 1, k: k}, insn{code: opJump, k: uint32(len(yes))})
	}
	return append(append(out, yes...), no...)
}

// oneOf runs pre, then yes when the accumulator is among the values, else no.
func oneOf(pre []insn, values []uint32, yes, no block) block {
	out := no
	for i := len(values) - 1; i >= 0; i-- {
		out = cond(nil, jmpEQ, values[i], yes, out)
	}
	return append(append(block{}, pre...), out...)
}

// A span is the verdict of all numbers from its first one to the next span.
type span struct {
	first uint32
	name  string // verdicts of the same name are the same
	block block
}

// entry decides by the call's number: a balanced tree of comparisons over spans
// of neighbours with the same verdict, some seven comparisons deep.
//
// Most calls are decided by number and architecture alone; from Linux 5.11 the
// kernel notices this when the filter is loaded and never runs it for them.
func entry(a abi, f variant) block {
	s := spans(a, f)
	return append(append(block{}, load(offNumber)...), tree(s)...)
}

func tree(s []span) block {
	if len(s) == 1 {
		return s[0].block
	}
	mid := len(s) / 2
	return cond(nil, jmpGE, s[mid].first, tree(s[mid:]), tree(s[:mid]))
}

// spans lays the verdicts of all numbers out in order. A number without a name
// is that of a call newer than this table: the program gets the error that the kernel
// has no such call, as an older kernel would, so that it falls back.
func spans(a abi, f variant) []span {
	unknown := span{name: "ENOSYS", block: errno(eNOSYS)}
	listed := make(map[string]Verdict, len(a.numbers))
	for _, g := range f.groups() {
		for _, name := range g.Calls {
			listed[name] = g.Verdict
		}
	}
	verdicts := make(map[uint32]span, len(a.numbers))
	for name, nr := range a.numbers {
		verdicts[nr] = listed[name].of(name, f)
	}
	if a.foreign != 0 {
		verdicts[a.foreign] = span{name: "EPERM", block: errno(ePERM)}
	}

	var out []span
	add := func(first uint32, v span) {
		if len(out) == 0 || out[len(out)-1].name != v.name {
			v.first = first
			out = append(out, v)
		}
	}
	next := uint32(0)
	for _, nr := range slices.Sorted(maps.Keys(verdicts)) {
		if nr != next {
			add(next, unknown)
		}
		add(nr, verdicts[nr])
		if nr == a.foreign && a.foreign != 0 {
			return out // all above belongs to the foreign table too
		}
		next = nr + 1
	}
	add(next, unknown)
	return out
}
