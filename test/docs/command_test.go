package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// invocation is the command with its arguments, up to the end of the shell's command.
var invocation = regexp.MustCompile(`(?:^|[\s(])llmsandbox ((?:'[^']*'|"[^"]*"|[^|;&()#'"])+)`)

// TestCommandsExist looks for every command and flag that the pages' shell lines show.
func TestCommandsExist(t *testing.T) {
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(bin, "llmsandbox")
	help := map[string]string{}
	seen := 0
	for file, text := range pages(t) {
		for _, b := range blocks(file, text) {
			if b.language != "console" && b.language != "sh" {
				continue
			}
			for line := range strings.Lines(b.text) {
				line, prompt := strings.CutPrefix(line, "$ ")
				if b.language == "console" && !prompt {
					continue // what it prints
				}
				line, _, _ = strings.Cut(line, " # ")
				for _, m := range invocation.FindAllStringSubmatch(line, -1) {
					seen++
					for _, why := range wrong(t, binary, help, m[1]) {
						t.Errorf("%s: %s: %s, want a command that exists", file, strings.TrimSpace(line), why)
					}
				}
			}
		}
	}
	for _, arguments := range []string{"no-such-command", "run --no-such-flag x", "cache no-such-command --older-than"} {
		if len(wrong(t, binary, help, arguments)) == 0 {
			t.Errorf("llmsandbox %s is taken for right, want len(wrong(t, binary, help, arguments)) != 0", arguments)
		}
	}
	if seen < 30 {
		t.Errorf("only %d uses of the command were seen, want at least 30", seen)
	}
}

var word = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// wrong tells what of a command's arguments does not exist.
func wrong(t *testing.T, binary string, help map[string]string, arguments string) (all []string) {
	t.Helper()
	words := word.FindAllString(arguments, -1)
	path := words[0]
	text := helpOf(t, binary, help, path)
	if text == "" {
		return []string{"there is no command " + path}
	}
	for _, below := range words[1:] {
		if !strings.Contains(text, "\nCommands:\n") || !regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(below)+` `).MatchString(text) {
			break
		}
		path += " " + below
		text = helpOf(t, binary, help, path)
	}
	for _, w := range words[1:] {
		if w == "--" {
			break
		}
		if flag, _, _ := strings.Cut(w, "="); strings.HasPrefix(flag, "-") && len(flag) > 1 && !strings.ContainsAny(flag, "'\"") {
			if !regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(flag) + `\b|^ +` + regexp.QuoteMeta(flag) + `, `).MatchString(text) {
				all = append(all, path+" has no flag "+flag)
			}
		}
	}
	return all
}

// helpOf is a command's help; empty where there is no such command.
func helpOf(t *testing.T, binary string, help map[string]string, path string) string {
	t.Helper()
	if text, ok := help[path]; ok {
		return text
	}
	out, err := exec.Command(binary, append(strings.Fields(path), "--help-all")...).CombinedOutput()
	if err != nil {
		out, err = exec.Command(binary, append(strings.Fields(path), "--help")...).CombinedOutput()
	}
	text := string(out)
	if err != nil || !strings.Contains(text, "llmsandbox "+path) && path != "help" {
		text = ""
	}
	help[path] = text
	return text
}
