//go:build unix

package kerneltest

// Show runs cells one after the other. Each is its code, the value it shows as plain text,
// and what it prints; it must be ok. What they wrote to stderr is the caller's to judge.
func (k *Kernel) Show(cells [][3]string) (stderr string) {
	k.t.Helper()
	for _, c := range cells {
		e := k.MustRun(c[0])
		if e.Value["text/plain"] != c[1] || e.Stdout != c[2] {
			k.t.Errorf("%q: %q, printed %.100q", c[0], e.Value, e.Stdout)
		}
		stderr += e.Stderr
	}
	return stderr
}
