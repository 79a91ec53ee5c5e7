package store

import (
	"bytes"
	"sync"
	"testing"
)

// TestSealingSecret: those who ask for the first time at once get the same secret, as do all after them; another database has another.
func TestSealingSecret(t *testing.T) {
	var others [][]byte
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		got := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = stores[i%2].SealingSecret(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		again, err := open(t, source).SealingSecret(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range append(got, again) {
			if len(one) != sealingSize || !bytes.Equal(one, got[0]) {
				t.Errorf("secrets of %d and %d bytes differ, want the same of %d", len(one), len(got[0]), sealingSize)
			}
		}
		if _, err := stores[0].EndAllSessions(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if same, err := stores[1].SealingSecret(t.Context()); err != nil || !bytes.Equal(same, again) {
			t.Errorf("without sessions there is another secret, %v", err)
		}
		if _, err := stores[0].EndAllSessions(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		others = append(others, again)
		if again, err = stores[1].SealingSecret(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			if bytes.Equal(other, again) {
				t.Error("a secret is there twice")
			}
		}
		others = append(others, again)
	})
}
