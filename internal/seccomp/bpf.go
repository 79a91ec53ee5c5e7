package seccomp

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
	retAllow = 0x7fff0000
	retErrno = 0x00050000

	ePERM  = 1
	eNOSYS = 38
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
