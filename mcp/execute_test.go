package mcp

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAcceptance100ExecuteCode(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	for _, c := range []struct {
		name string
		in   args
		want outcome
	}{
		{"python", args{"code": "print('hi')"}, outcome{Stdout: "hi\n", Status: "ok"}},
		{"javascript", args{"code": "console.log(6*7)", "language": "javascript"}, outcome{Stdout: "42\n", Status: "ok"}},
		{"alias", args{"code": "echo hi", "language": "sh", "libraries": nil}, outcome{Stdout: "hi\n", Status: "ok"}},
		{"exit code", args{"code": "import sys; sys.exit(7)"}, outcome{ExitCode: 7, Status: "error"}},
		{"timeout", args{"code": "while True: pass", "timeout": 1}, outcome{ExitCode: 124, Status: "timeout"}},
	} {
		_, got := execute(t, client, c.in)
		if got.ExitCode != c.want.ExitCode || got.Stdout != c.want.Stdout || got.Status != c.want.Status {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	res, got := execute(t, client, args{"code": "raise ValueError('x')"})
	if got.ExitCode != 1 || !strings.Contains(got.Stderr, "ValueError: x") || !strings.HasPrefix(text(t, res), `{"exit_code":1,"stderr":`) {
		t.Errorf("an exception: %s", text(t, res))
	}
	got = decode[outcome](t, use(t, client, "execute_code", args{"code": "x", "language": "cobol"}))
	if got.ExitCode != 1 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "Unsupported language: cobol") {
		t.Errorf("an unknown language: %+v", got)
	}
}

func TestAcceptance100NothingIsKept(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	execute(t, client, args{"code": "open('secret','w').write('x'); import os; os.system('sleep 600 &')"})
	_, got := execute(t, client, args{"code": "import os; print(os.path.exists('secret'), [p for p in os.listdir('/proc') if p.isdigit() and b'600' in open(f'/proc/{p}/cmdline','rb').read()])"})
	if got.Stdout != "False []\n" {
		t.Errorf("%q", got.Stdout)
	}
}

func TestAcceptance100Pictures(t *testing.T) {
	// The system's own interpreter has the libraries, where another comes first in the PATH.
	env := map[string]string{"PATH": "/usr/bin:/bin", "PYTHONHOME": "", "LD_LIBRARY_PATH": ""}
	client := connect(t, newServer(t, Config{Sandbox: llmsandbox.Options{Env: env}}), nil)
	res, got := execute(t, client, args{"timeout": 60, "code": `
import importlib.util
if importlib.util.find_spec("matplotlib") is None:
    print("none")
else:
    import matplotlib.pyplot as plt
    for width in (2, 3, 4):
        plt.figure(figsize=(width, 1), dpi=100)
        plt.plot([1, 2])
        plt.show()
    print("done")
`})
	require(t, got.Stdout != "none\n", "matplotlib is not installed")
	if got.ExitCode != 0 || len(res.Content) != 4 {
		t.Fatalf("%d items, %+v", len(res.Content), got)
	}
	wider := 0 // than the one before: they are in order
	for i := range 3 {
		picture, ok := res.Content[i].(*sdk.ImageContent)
		if !ok || picture.MIMEType != "image/png" || !strings.HasPrefix(string(picture.Data), "\x89PNG") {
			t.Errorf("item %d: %T", i, res.Content[i])
		}
		if a := got.Artifacts[i]; a.Width <= wider || a.Bytes != len(picture.Data) {
			t.Errorf("picture %d: %+v", i, a)
		}
		wider = got.Artifacts[i].Width
	}
	if _, ok := res.Content[3].(*sdk.TextContent); !ok {
		t.Errorf("the last item: %T", res.Content[3])
	}
}
