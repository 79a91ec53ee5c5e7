package cli

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const cliPage = "../../docs/cli.md"

// The page on the command is what the command says.
func TestReference(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(cliPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the help of the commands, want it the same: run go test ./internal/cli -run TestReference -update", cliPage)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from the help of the commands: go test ./internal/cli -run TestReference -update -->
# Command reference

This page lists all commands and flags of ` + "`llmsandbox`" + `. Each command also prints its own help:

- ` + "`llmsandbox COMMAND --help`" + ` shows the flags that are used most.
- ` + "`llmsandbox COMMAND --help-all`" + ` shows all flags.
- ` + "`llmsandbox COMMAND --backend docker --help`" + ` also shows the flags for that backend.

Use a [configuration file or environment variables](configuration.md) to set flags permanently.
`)
	root := newRootCommand()
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				referenceOf(&b, c)
			}
		}
	}
	b.WriteString("\n## Flags for one backend\n\nThese flags are for sandboxes on one backend. With another backend, they are an error.\n")
	for _, g := range flagGroups {
		if g.backends == nil {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n", g.title)
		var flags []*pflag.Flag
		for name := range strings.FieldsSeq(g.flags) {
			if f := anyFlag(root, name); f != nil {
				flags = append(flags, f)
			}
		}
		flagTable(&b, flags)
	}
	return b.String()
}

// anyFlag is a flag of that name of any command.
func anyFlag(cmd *cobra.Command, name string) *pflag.Flag {
	for _, c := range cmd.Commands() {
		if f := anyFlag(c, name); f != nil {
			return f
		}
	}
	return cmd.Flags().Lookup(name)
}

func referenceOf(b *strings.Builder, c *cobra.Command) {
	text := strings.NewReplacer("<", `\<`, "*", `\*`, "[", `\[`).Replace(cmp.Or(c.Long, c.Short+"."))
	fmt.Fprintf(b, "\n### %s\n\n%s\n", c.CommandPath(), text)
	if works(c) {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", c.UseLine())
	}
	groups, _ := groupedFlags(c, "", true)
	special := map[string]bool{}
	for _, g := range flagGroups {
		special[g.title] = g.backends != nil
	}
	var more []string
	for _, g := range groups {
		// A short list of flags has no groups, and those for one backend among them.
		own := slices.DeleteFunc(slices.Clone(g.flags), func(f *pflag.Flag) bool { return !commonFlag(f.Name) })
		if len(own) < len(g.flags) {
			var names []string
			for _, f := range g.flags {
				if !commonFlag(f.Name) {
					names = append(names, "`--"+f.Name+"`")
				}
			}
			title := g.title
			if !special[title] {
				title = "Kubernetes"
			}
			more = append(more, fmt.Sprintf("[%s](#%s): %s", title, strings.ReplaceAll(strings.ToLower(title), " ", "-"), strings.Join(names, ", ")))
		}
		if len(own) > 0 {
			fmt.Fprintf(b, "\n**%s**\n", g.title)
			flagTable(b, own)
		}
	}
	if len(more) > 0 {
		b.WriteString("\nFlags for one backend:\n\n")
		for _, m := range more {
			fmt.Fprintf(b, "- %s\n", m)
		}
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	for _, sub := range c.Commands() {
		referenceOf(b, sub)
	}
}

// commonFlag reports whether a flag is for all backends.
func commonFlag(name string) bool { return fitsBackend(name, "") }

func flagTable(b *strings.Builder, flags []*pflag.Flag) {
	b.WriteString("\n| flag | meaning |\n| --- | --- |\n")
	for _, f := range flags {
		usage := strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(flagUsage(f))
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(flagName(f)), "|", `\|`), usage)
	}
}

var ourVariable = regexp.MustCompile(`"(LLMSANDBOX_[A-Z_]+)"`)

// The page on configuration has each variable that the product reads, and the rule for those of flags.
func TestConfigurationPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	internal := []string{ // between programs of ours, or for tests
		handedVariable, variablePrefix, "LLMSANDBOX_REQUIRE", "LLMSANDBOX_PROXY", "LLMSANDBOX_TOKEN", "LLMSANDBOX_GUEST",
	}
	tests := regexp.MustCompile(`_test\.go$|^\.\./\.\./(test|backend/backendtest|internal/test)`)
	err = filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || tests.MatchString(filepath.ToSlash(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range ourVariable.FindAllSubmatch(text, -1) {
			name := string(m[1])
			if slices.Contains(internal, name) || strings.HasPrefix(name, "LLMSANDBOX_TEST_") {
				continue
			}
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/configuration.md has no %s, which %s reads", name, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	everyCommand(func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, only := f.Annotations[onlyHere]; only && !strings.Contains(string(page), "`--"+f.Name+"`") {
				t.Errorf("docs/configuration.md has no --%s, want it among the flags of the command line only", f.Name)
			}
		})
	})
	root := newRootCommand()
	for _, m := range regexp.MustCompile("\\| `--([a-z-]+)` \\| `(LLMSANDBOX_[A-Z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if f := anyFlag(root, m[1]); f == nil || !configurable(f) || variable(m[1]) != m[2] {
			t.Errorf("docs/configuration.md: --%s is %s, want a flag with its variable %s", m[1], m[2], variable(m[1]))
		}
	}
	for _, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if err := checkExample(t, m[1]); err != nil {
			t.Errorf("docs/configuration.md: %v in\n%s", err, m[1])
		}
	}
}

// checkExample reads a configuration as the command does.
func checkExample(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, configName), []byte(text), 0o600); err != nil {
		return err
	}
	_, err := configFiles()
	return err
}

// flagName is how a flag is written, as in "  -l, --lang LANGUAGE".
func flagName(f *pflag.Flag) string {
	short := "    "
	if f.Shorthand != "" {
		short = "-" + f.Shorthand + ", "
	}
	value, _ := pflag.UnquoteUsage(f)
	if f.NoOptDefVal != "" && value != "" {
		return "  " + short + "--" + f.Name + "[=" + value + "]"
	}
	return strings.TrimRight("  "+short+"--"+f.Name+" "+value, " ")
}

// flagUsage is what a flag does, with its default.
func flagUsage(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "false", "[]":
		return usage
	}
	return usage + " (default " + f.DefValue + ")"
}
