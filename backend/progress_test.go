package backend

import (
	"errors"
	"reflect"
	"testing"
)

func TestProgressString(t *testing.T) {
	for want, p := range map[string]Progress{
		"Installing numpy":                 {Stage: "install", Message: "numpy", Output: "Collecting numpy"},
		"Installed numpy":                  {Stage: "install", Message: "numpy", Done: true},
		"Pulling python:3.12":              {Stage: "pull", Message: "python:3.12", Current: 3, Total: 4},
		"Building":                         {Stage: "build"},
		"Preparing a cache failed: broken": {Stage: "prepare", Message: "a cache", Done: true, Error: "broken"},
		"polish shoes":                     {Stage: "polish", Message: "shoes"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}

func TestBeginStep(t *testing.T) {
	var got []Progress
	report := func(p Progress) { got = append(got, p) }
	BeginStep(report, "load", "x")(nil)
	BeginStep(report, "load", "y")(errors.New("broken"))
	BeginStep(nil, "load", "z")(nil)
	want := []Progress{
		{Stage: "load", Message: "x"}, {Stage: "load", Message: "x", Done: true},
		{Stage: "load", Message: "y"}, {Stage: "load", Message: "y", Done: true, Error: "broken"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reports %+v, want %+v", got, want)
	}
}
