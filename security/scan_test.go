package security

import (
	"context"
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestABrokenScannerRefuses(t *testing.T) {
	for _, l := range []*language.Language{
		{Name: "python", Scan: func(_ *language.Meter, code []byte) language.Facts { return language.Facts{Problem: string(code[5:])} }},
		{Name: "python", Title: "Python"},
	} {
		c, err := Compile(Policy{Threshold: High})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.look(t.Context(), l, []byte("x")); err != nil || !r.Blocked || len(r.Findings) != 1 || r.Findings[0].Rule != ruleUnreadable {
			t.Errorf("got %+v, %v, want no error, Blocked true, len(r.Findings) = 1, Rule = %v", r, err, ruleUnreadable)
		}
	}
}

// Code that takes more steps than its size allows is refused with that reason; a context that
// ends while code is read is an error, and nothing is said of the code.
func TestAScanThatDoesNotEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Compile(Policy{Threshold: High})
	if err != nil {
		t.Fatal(err)
	}
	endless := func(began func()) *language.Language {
		return &language.Language{Name: "python", Scan: func(m *language.Meter, code []byte) language.Facts {
			for began(); ; {
				m.Step()
			}
		}}
	}
	r, err := c.look(ctx, endless(func() {}), []byte("x"))
	if err != nil || !r.Blocked || len(r.Findings) != 1 || r.Findings[0].Rule != ruleUnreadable || r.Findings[0].Reason != language.ErrTooComplex.Error() {
		t.Errorf("report = %+v, %v, want one finding for %v", r, err, language.ErrTooComplex)
	}
	r, err = c.look(ctx, endless(cancel), []byte("x"))
	if !errors.Is(err, context.Canceled) || len(r.Findings) != 0 {
		t.Errorf("report = %+v, %v, want no findings and %v", r, err, context.Canceled)
	}
}
