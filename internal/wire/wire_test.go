package wire

import "testing"

type sample struct {
	N uint32
	I int64
	S []string
}

func (s *sample) Fields(c *Coder) { c.Fields(&s.N, &s.I, &s.S) }

// One value has one encoding: what is decoded encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, &sample{N: 300, I: -5, S: []string{"", "a"}}))
	f.Add([]byte{0x80, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s sample
		rest, err := Decode(b, &s)
		if err != nil {
			return
		}
		if again := string(Append(nil, &s)) + string(rest); again != string(b) {
			t.Errorf("%x decoded and encoded is %x", b, again)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": {}, "a long zero": {0x80, 0, 0, 0}, "a long signed zero": {0, 0x80, 0, 0},
		"a number over its type": {255, 255, 255, 255, 31, 0, 0}, "a list that cannot fit": {0, 0, 200, 1, 0},
	} {
		if _, err := Decode(b, &sample{}); err == nil {
			t.Errorf("%s: decoded, want an error", name)
		}
	}
}
