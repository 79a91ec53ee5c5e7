package llmsandbox

// A bounded writer keeps the first bytes that are written to it, and takes the others. It
// is no bytes.Buffer, whose ReadFrom knows no bound.
type bounded struct {
	most int
	kept []byte
	cut  bool
}

// Write never fails.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - len(b.kept)
	b.cut = b.cut || len(p) > room
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	return len(p), nil
}
