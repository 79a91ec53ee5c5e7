package main

import "testing"

// data is struct seccomp_data.
type data struct {
	nr, arch uint32
	args     [6]uint64
}

func (d data) word(t testing.TB, offset uint32) uint32 {
	switch {
	case offset == offNumber:
		return d.nr
	case offset == offArch:
		return d.arch
	case offset >= offArgs && offset < offArgs+48 && offset%4 == 0:
		v := d.args[(offset-offArgs)/8]
		if offset%8 == 4 {
			v >>= 32
		}
		return uint32(v)
	}
	t.Fatalf("load at offset %d, want one of the fields that the filter needs", offset)
	return 0
}

// run interprets a program as the kernel does and returns its verdict and how
// many instructions that took.
func run(t testing.TB, prog block, d data) (verdict uint32, steps int) {
	t.Helper()
	var a uint32
	for pc := 0; ; {
		if pc < 0 || pc >= len(prog) {
			t.Fatalf("program counter %d outside the program of %d", pc, len(prog))
		}
		i := prog[pc]
		pc++
		steps++
		jump := func(yes bool) {
			if yes {
				pc += int(i.jt)
			} else {
				pc += int(i.jf)
			}
		}
		switch i.code {
		case opLoad:
			a = d.word(t, i.k)
		case opAnd:
			a &= i.k
		case opJump:
			pc += int(i.k)
		case jmpEQ:
			jump(a == i.k)
		case jmpGE:
			jump(a >= i.k)
		case jmpSet:
			jump(a&i.k != 0)
		case opRet:
			return i.k, steps
		default:
			t.Fatalf("instruction %#x at %d, want one that the machine knows", i.code, pc-1)
		}
	}
}
