package security

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/language"
)

func TestABrokenScannerRefuses(t *testing.T) {
	for _, l := range []*language.Language{
		{Name: "python", Scan: func(code []byte) language.Facts { return language.Facts{Problem: string(code[5:])} }},
		{Name: "python", Title: "Python"},
	} {
		c, err := Compile(Policy{Threshold: High})
		if err != nil {
			t.Fatal(err)
		}
		if r := c.look(l, []byte("x")); !r.Blocked || len(r.Findings) != 1 || r.Findings[0].Rule != ruleUnreadable {
			t.Errorf("got %+v", r)
		}
	}
}
