package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanged(t *testing.T) {
	before := []string{"PATH=/bin", "HOME=/sandbox", "SAME=1"}
	out := "A=noise\x00B=2\nthe-mark\nPATH=/env/bin:/bin\x00HOME=/sandbox\x00SAME=1\x00LINES=a\nb=c\x00EMPTY=\x00SHLVL=2\x00_=/usr/bin/env\x00PWD=/\x00no variable\x00=x\x00"
	got, err := changed(before, []byte(out), "the-mark")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PATH=/env/bin:/bin", "LINES=a\nb=c", "EMPTY="}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := changed(before, []byte("A=1\x00"), "the-mark"); err == nil {
		t.Error("what has no mark was taken")
	}
}
