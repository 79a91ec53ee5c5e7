package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// An environment is in all sandboxes that share Python's files: of programs, of sessions, and those with a library more.
func TestEnvironment(t *testing.T) {
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	dir := t.TempDir()
	testpackage.Wheel(t, dir, "tinymcp", "1.0", map[string]string{"sympy.py": "answer = 42\n"}) // a name that is looked for
	testpackage.Wheel(t, dir, "moremcp", "1.0", map[string]string{"moremcp.py": "import sympy\nanswer = sympy.answer + 1\n"})
	o := llmsandbox.Options{Install: llmsandbox.InstallOptions{Local: dir}}
	lock, err := llmsandbox.LockEnvironment(testContext(t), []string{"tinymcp"}, &o)
	if err != nil {
		t.Fatal(err)
	}
	o.Environment = filepath.Join(dir, "tiny.toml")
	if err := os.WriteFile(o.Environment, lock, 0o644); err != nil {
		t.Fatal(err)
	}
	client := connect(t, newServer(t, Config{Sandbox: o, Warm: 1}), nil)
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"code": "import sympy; print(sympy.answer)"}, "42\n"},
		{args{"code": "import moremcp; print(moremcp.answer)", "libraries": []string{"moremcp"}}, "43\n"},
		{args{"code": "python3 -c 'import sympy; print(sympy.answer)'", "language": "bash"}, "42\n"},
	} {
		if _, got := execute(t, client, c.in); got.Stdout != c.want {
			t.Errorf("%v: %+v, want Stdout = %q", c.in, got, c.want)
		}
	}
	details := decode[languageDetails](t, use(t, client, "get_language_details", args{"language": "python"}))
	if want := []string{"sympy"}; !slices.Equal(details.Preinstalled, want) {
		t.Errorf("preinstalled_libraries = %q, want %q", details.Preinstalled, want)
	}
}

func TestEnvironmentOfLanguages(t *testing.T) {
	for name, c := range map[string]struct {
		cfg          Config
		python, bash string
	}{
		"none":              {Config{}, "", ""},
		"this machine":      {Config{Sandbox: llmsandbox.Options{Environment: "e"}}, "e", "e"},
		"an image for all":  {Config{Sandbox: llmsandbox.Options{Environment: "e", Image: "i"}}, "e", "e"},
		"an image for bash": {Config{Sandbox: llmsandbox.Options{Environment: "e"}, Images: map[string]string{"bash": "b"}}, "e", ""},
		"two images":        {Config{Sandbox: llmsandbox.Options{Environment: "e"}, Images: map[string]string{"bash": "b", "python": "p"}}, "e", ""},
	} {
		if python, bash := c.cfg.environment("python"), c.cfg.environment("bash"); python != c.python || bash != c.bash {
			t.Errorf("%s: of Python %q and of Bash %q, want %q and %q", name, python, bash, c.python, c.bash)
		}
	}
}
