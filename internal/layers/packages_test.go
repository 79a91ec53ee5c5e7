package layers

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// TestSurplus: packages go, those used longest ago first; nothing else does.
func TestSurplus(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	layers := []backend.LayerInfo{
		{Key: "list", Size: 100, LastUsed: day(1)},
		{Key: "old", Size: 4, LastUsed: day(2), Package: true},
		{Key: "new", Size: 4, LastUsed: day(4), Package: true},
		{Key: "made-later", Size: 4, LastUsed: day(3), Created: day(2), Package: true},
		{Key: "made-first", Size: 4, LastUsed: day(3), Created: day(1), Package: true},
	}
	for most, want := range map[int64][]string{
		16: nil, 15: {"old"}, 11: {"made-first", "old"}, 8: {"made-first", "old"}, 4: {"made-later", "made-first", "old"},
		3: {"new", "made-later", "made-first", "old"},
	} {
		var got []string
		for _, l := range surplus(layers, most) {
			got = append(got, l.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("more than %d: %q, want %q", most, got, want)
		}
	}
}

// TestPackageKey: a layer is of one toolchain and of the digests.
func TestPackageKey(t *testing.T) {
	of := func(toolchain, of string, list ...language.Package) string {
		return (&packages{Libraries: &Libraries{language: shelf}, toolchain: toolchain}).key(of, list...)
	}
	six := language.Package{Name: "six", Version: "1", SHA256: []string{"a"}}
	keys := []string{of("t", "package", six)}
	for _, other := range []language.Package{{Name: "seven", Version: "1", SHA256: []string{"a"}}, {Name: "six", Version: "2", SHA256: []string{"a"}}, {Name: "six", Version: "1", SHA256: []string{"a", "b"}}} {
		keys = append(keys, of("t", "package", other))
	}
	keys = append(keys, of("u", "package", six), of("t", "fonts", six), of("t", "fonts", six, six))
	for i, key := range keys {
		if slices.Index(keys, key) != i || key == "" {
			t.Errorf("keys %q: number %d is there twice", keys, i)
		}
	}
	if again := of("t", "package", six); again != keys[0] {
		t.Errorf("%s and %s, want the same key", again, keys[0])
	}
}

// TestRemaining: what was taken for one package is not there for the next, and nothing is never no bound.
func TestRemaining(t *testing.T) {
	all := layertree.Options{MaxBytes: 10, MaxFiles: 5, Links: true}
	for taken, want := range map[layertree.Size]layertree.Options{
		{}: all, {Bytes: 9, Files: 4}: {MaxBytes: 1, MaxFiles: 1, Links: true}, {Bytes: 10}: {}, {Files: 5}: {}, {Bytes: 11}: {}, {Files: 6}: {},
	} {
		got, err := remaining(all, taken)
		if large := want == (layertree.Options{}); errors.Is(err, tarcheck.ErrTooLarge) != large || !large && got != want {
			t.Errorf("after %+v: %+v, %v, want %+v", taken, got, err, want)
		}
	}
}
