package seccomp

import "sort"

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
func entry(a abi) block {
	s := spans(a)
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
func spans(a abi) []span {
	unknown := span{name: "ENOSYS", block: errno(eNOSYS)}
	listed := make(map[string]Verdict, len(a.numbers))
	for _, g := range groups() {
		for _, name := range g.Calls {
			listed[name] = g.Verdict
		}
	}
	verdicts := make(map[uint32]span, len(a.numbers))
	for _, n := range a.numbers {
		verdicts[n.nr] = listed[n.name].of(n.name)
	}
	if a.foreign != 0 {
		verdicts[a.foreign] = span{name: "EPERM", block: errno(ePERM)}
	}

	numbers := make([]uint32, 0, len(verdicts))
	for nr := range verdicts {
		numbers = append(numbers, nr)
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })

	var out []span
	add := func(first uint32, v span) {
		if len(out) == 0 || out[len(out)-1].name != v.name {
			v.first = first
			out = append(out, v)
		}
	}
	next := uint32(0)
	for _, nr := range numbers {
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
