package environ

import (
	"slices"
	"testing"
)

func TestValue(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3=4", "C"}
	for name, want := range map[string]string{"A": "3=4", "AB": "2", "C": "", "D": "", "": ""} {
		if got := Value(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOfPrograms(t *testing.T) {
	env := []string{"A=1", "no variable", "=nameless", "", "B=", "LLMSANDBOX_TOKEN=x", "LLMSANDBOX_", "C=LLMSANDBOX_X=1", "LLMSANDBOXES=2", "D=a=b"}
	got := OfPrograms(env)
	if want := []string{"A=1", "B=", "C=LLMSANDBOX_X=1", "LLMSANDBOXES=2", "D=a=b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if env[1] != "no variable" || env[5] != "LLMSANDBOX_TOKEN=x" {
		t.Errorf("what was given became %q, want env[1] = \"no variable\", env[5] = \"LLMSANDBOX_TOKEN=x\"", env)
	}
}

func TestOverride(t *testing.T) {
	env := []string{"A=1", "B=2", "A=3", "C"}
	got := Override(env, []string{"B=4", "D=5", "D="})
	if !slices.Equal(got, []string{"A=3", "B=4", "C", "D="}) || env[0] != "A=1" || env[1] != "B=2" {
		t.Errorf("%q of %q, want got [\"A=3\" \"B=4\" \"C\" \"D=\"], env[0] = \"A=1\", env[1] = \"B=2\"", got, env)
	}
	if got := Override(nil, nil); len(got) != 0 {
		t.Errorf("%q, want none", got)
	}
}

func TestAddMissing(t *testing.T) {
	env := make([]string, 1, 4)
	env[0] = "A=1"
	got := AddMissing(env, []string{"A=2", "B=3", "AB=4"})
	if !slices.Equal(got, []string{"A=1", "B=3", "AB=4"}) || env[:2][1] != "" {
		t.Errorf("%q of %q, want got [\"A=1\" \"B=3\" \"AB=4\"], env[:2][1] empty", got, env[:2])
	}
}

func TestWithSystemPath(t *testing.T) {
	for path, want := range map[string]string{
		"PATH=/usr/local/bin:/usr/bin": "PATH=/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin",
		DefaultPath:                    DefaultPath,
		"PATH=/x:/usr/sbin":            "PATH=/x:/usr/sbin:/usr/local/sbin:/sbin",
	} {
		if got := WithSystemPath([]string{"A=b", path}); !slices.Equal(got, []string{"A=b", want}) {
			t.Errorf("%s becomes %q, want %s", path, got, want)
		}
	}
}
