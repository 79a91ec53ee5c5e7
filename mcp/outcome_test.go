package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\rc":           "a\nb\nc",
		"safe\rsudo":          "safe\nsudo",
		"a\bb":                "ab",
		"\x1b[31mred\x1b[0m":  "red",
		"❤\ufe0f":             "❤\ufe0f",
		"1\ufe0e\ufe0f\ufe0e": "1\ufe0e",
		"h\U000e0101i\ufe05":  "hi",
		"a\u3164b\u00adc":     "abc",
		"\xff\xfe":            "\ufffd\ufffd",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	if s, cut := shorten("short", 5); s != "short" || cut != 0 {
		t.Errorf("%q, %d, want s = \"short\", cut = 0", s, cut)
	}
	s, cut := shorten(strings.Repeat("é", 100), 11)
	if want := "éé\n[... 190 bytes left out ...]\nééé"; s != want || cut != 190 {
		t.Errorf("%q, %d, want s = %q, cut = 190", s, cut, want)
	}
}

func TestNumbersAreWrittenOut(t *testing.T) {
	for got, want := range map[string]string{
		count(1, "byte"): "1 byte", count(0, "byte"): "0 bytes", count(1.0, "CPU"): "1 CPU", count(0.5, "CPU"): "0.5 CPUs",
		span(5 * time.Minute): "5 minutes", span(time.Minute): "1 minute", span(90 * time.Second): "90 seconds",
		span(time.Second): "1 second", span(1500 * time.Millisecond): "1.5s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a\r\n\r\rb", "\x1b]0;t\x07x", "\u202e\ufe0f\ufe0f", "\xc3", "a\x00\u009b1mb", strings.Repeat("é", 50)} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		got := clean(s)
		if !utf8.ValidString(got) || clean(got) != got {
			t.Fatalf("%q: %q, then %q", s, got, clean(got))
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q: %q is left, want unicode.IsControl(r) = false or r = '\\n' or r = '\\t'", s, r)
			}
		}
		most = max(most%1000, 0)
		short, cut := shorten(got, most)
		if !utf8.ValidString(short) || cut < 0 || len(short) > most+60 || (cut == 0) != (len(got) <= most) {
			t.Fatalf("%q at %d: %q, %d, want utf8.ValidString(short) = true, cut >= 0, len(short) <= %v, cut == 0 = %v", got, most, short, cut, most+60, len(got) <= most)
		}
		if strings.Contains(line(s), "\n") {
			t.Fatalf("%q is no line, want it not to contain \"\\n\"", line(s))
		}
	})
}

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
		{"exit code", args{"code": "import sys; sys.exit(7)"}, outcome{ExitCode: new(7), Status: "error"}},
		{"our own code", args{"code": "import sys; sys.exit(125)"}, outcome{ExitCode: new(125), Status: "error"}},
		{"timeout", args{"code": "while True: pass", "timeout": 1}, outcome{ExitCode: new(124), Status: "timeout"}},
	} {
		_, got := execute(t, client, c.in)
		if c.want.ExitCode == nil {
			c.want.ExitCode = new(0)
		}
		if got.exit() != c.want.exit() || got.Stdout != c.want.Stdout || got.Status != c.want.Status {
			t.Errorf("%s: %+v, want ExitCode = %v, Stdout = %v, Status = %v", c.name, got, c.want.exit(), c.want.Stdout, c.want.Status)
		}
	}
	for code, note := range map[string]bool{"1 + 1": true, "print(2)": false, "import sys; sys.exit(3)": false, "import sys; print(1, file=sys.stderr)": false} {
		if _, got := execute(t, client, args{"code": code}); slices.Contains(got.Notes, "no output: print what you want to see") != note {
			t.Errorf("%s: notes %q, want one on missing output = %v", code, got.Notes, note)
		}
	}
	res, got := execute(t, client, args{"code": "raise ValueError('x')"})
	if got.exit() != 1 || !strings.Contains(got.Stderr, "ValueError: x") || !strings.HasPrefix(text(t, res), `{"exit_code":1,"stderr":`) {
		t.Errorf("an exception: %s, want ExitCode = 1, Stderr containing \"ValueError: x\", it to begin with \"{\\\"exit_code\\\":1,\\\"stderr\\\":\"", text(t, res))
	}
	got = decode[outcome](t, use(t, client, "execute_code", args{"code": "x", "language": "cobol"}))
	if got.ExitCode != nil || got.Stdout+got.Stderr != "" || !strings.HasPrefix(got.Error, "Unsupported language: cobol; use python, ") {
		t.Errorf("an unknown language: %+v, want no ExitCode, no output, Error beginning with \"Unsupported language: cobol; use python, \"", got)
	}
}

func TestAcceptance100NothingIsKept(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	execute(t, client, args{"code": "open('secret','w').write('x'); import os; os.system('sleep 600 &')"})
	_, got := execute(t, client, args{"code": "import os; print(os.path.exists('secret'), [p for p in os.listdir('/proc') if p.isdigit() and b'600' in open(f'/proc/{p}/cmdline','rb').read()])"})
	if got.Stdout != "False []\n" {
		t.Errorf("%q, want \"False []\\n\"", got.Stdout)
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
	if got.exit() != 0 || len(res.Content) != 4 {
		t.Fatalf("%d items, %+v, want ExitCode = 0, len(res.Content) = 4", len(res.Content), got)
	}
	wider := 0 // than the one before: they are in order
	for i := range 3 {
		picture, ok := res.Content[i].(*sdk.ImageContent)
		if !ok || picture.MIMEType != "image/png" || !strings.HasPrefix(string(picture.Data), "\x89PNG") {
			t.Errorf("item %d: %T, want an image, MIMEType = \"image/png\", Data beginning with \"\\x89PNG\"", i, res.Content[i])
		}
		if a := got.Artifacts[i]; a.Width <= wider || a.Bytes != len(picture.Data) {
			t.Errorf("picture %d: %+v, want Width > %v, Bytes = %v", i, a, wider, len(picture.Data))
		}
		wider = got.Artifacts[i].Width
		if c := got.Artifacts[i].Chart; c == nil || string(c.Axes[0].Series[0].Y) != "[1,2]" {
			t.Errorf("picture %d: chart %+v, want Y = [1,2]", i, c)
		}
	}
	if _, ok := res.Content[3].(*sdk.TextContent); !ok {
		t.Errorf("the last item: %T, want text", res.Content[3])
	}
}

func TestCommitIsTold(t *testing.T) {
	var fail error
	client := connect(t, newServer(t, Config{Commit: func(ctx context.Context, sb *llmsandbox.Sandbox, language string) (string, error) {
		if _, err := sb.Stat(ctx, "made"); err != nil {
			t.Errorf("the sandbox is not that of the call: %v", err)
		}
		return "saved:" + language, fail
	}}), nil)
	if _, got := execute(t, client, args{"code": "open('made', 'w'); print(1)"}); got.Image != "saved:python" || len(got.Notes) != 0 {
		t.Errorf("%+v, want Image = \"saved:python\", no Notes", got)
	}
	fail = errors.New("disk full")
	_, got := execute(t, client, args{"code": "open('made', 'w'); print(1)"})
	if got.Status != "ok" || len(got.Notes) != 1 || got.Image != "" {
		t.Errorf("%+v, want Status = \"ok\", len(got.Notes) = 1, Image empty", got)
	}
}
