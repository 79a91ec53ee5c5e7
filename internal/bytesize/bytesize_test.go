package bytesize

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "7": 7, "7b": 7, "1k": 1024, "1kb": 1024, "1KiB": 1024, "512m": 512 << 20, "1.5g": 3 << 29,
		" 2 GiB ": 2 << 30, "1t": 1 << 40,
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "m", "-1", "1x", "1ii", "1i", "1e400", "9999999t", "0x10", "nan", "1 m g", "inf"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", in, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for in, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 2047: "2 KiB", 1 << 30: "1 GiB", 5 << 50: "5120 TiB"} {
		if got := Format(in); got != want {
			t.Errorf("Format(%d) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"512m", "1.5GiB", "", "-1", "1e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := Parse(s); err == nil && n < 0 {
			t.Errorf("Parse(%q) = %d, want an error or n >= 0", s, n)
		}
	})
}
