package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls visit for each command that is shown.
func everyCommand(visit func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		visit(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}

// The help that is asked for first fits on a screen, at a width of 100 columns.
func TestHelpFits(t *testing.T) {
	const lines = 60
	everyCommand(func(c *cobra.Command) {
		if c.Name() == runtimeOptionsTopic {
			return
		}
		for _, backend := range append(backendNames, "") {
			text := helpText(c, backend, backend == "")
			for line := range strings.Lines(text) {
				if n := len(strings.TrimSuffix(line, "\n")); n > helpColumns {
					t.Errorf("%s: a line of %d columns, want at most %d: %s", c.CommandPath(), n, helpColumns, line)
				}
			}
			if n := strings.Count(text, "\n"); backend == localName && n > lines {
				t.Errorf("%s --help has %d lines, want at most %d: make a flag rare in flagGroups", c.CommandPath(), n, lines)
			}
		}
	})
}

func TestFlagsAreDescribed(t *testing.T) {
	const longest = 100
	placeholder := regexp.MustCompile(`^[A-Z][A-Z0-9]*([=@\[:]+[A-Z]+[\]:]*)*$`)
	var grouped []string
	for _, g := range flagGroups {
		grouped = append(grouped, strings.Fields(g.flags+" "+g.rare)...)
	}
	used := map[string]bool{}
	everyCommand(func(c *cobra.Command) {
		if c.HasParent() && !c.Parent().HasParent() && c.GroupID == "" {
			t.Errorf("%s is in no group, want one of those of newRootCommand", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || f.Name == "version" || f.Name == helpAllName {
				return
			}
			at := c.CommandPath() + " --" + f.Name
			used[f.Name] = true
			if !slices.Contains(grouped, f.Name) {
				t.Errorf("%s is in no group of flagGroups", at)
			}
			if n := len(f.Usage); n > longest || n == 0 {
				t.Errorf("%s: a description of %d characters, want 1 to %d", at, n, longest)
			}
			value, _ := pflag.UnquoteUsage(f)
			if quotes := strings.Count(f.Usage, "`"); quotes > 2 || f.Value.Type() == "bool" && quotes > 0 {
				t.Errorf("%s: backquotes in %q, want them around one placeholder of a value", at, f.Usage)
			}
			if f.Value.Type() != "bool" && !placeholder.MatchString(value) {
				t.Errorf("%s: the placeholder %q, want a word in capitals between backquotes in %q", at, value, f.Usage)
			}
		})
	})
	for i, name := range grouped {
		if !used[name] || slices.Index(grouped, name) != i {
			t.Errorf("flagGroups has --%s, want a flag of a command, once", name)
		}
	}
}

// Flags of a backend are shown with it, and all with --help-all.
func TestHelpShowsTheFlagsOfABackend(t *testing.T) {
	run, _, err := newRootCommand().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backend string
		all     bool
		want    []string
	}{
		{"local", false, nil},
		{"docker", false, []string{"--runtime-option"}},
		{"micromamba", false, []string{"--runtime-option"}},
		{"kubernetes", false, []string{"--pod-template"}},
		{"local", true, []string{"--runtime-option", "--pod-template", "--text-errors"}},
	} {
		text := helpText(run, c.backend, c.all)
		for _, flag := range []string{"--runtime-option", "--pod-template", "--text-errors"} {
			if got, want := strings.Contains(text, flag), slices.Contains(c.want, flag); got != want {
				t.Errorf("backend %s, all %v: help contains %s: %v, want %v", c.backend, c.all, flag, got, want)
			}
		}
	}
}
