package lex

import (
	"fmt"
	"testing"
)

func TestWords(t *testing.T) {
	if got, want := fmt.Sprint(Words(" if\n\t&& else if ")()), "map[&&:true else:true if:true]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Words("")(); len(got) != 0 {
		t.Errorf("no words: got %v, want none", got)
	}
}
