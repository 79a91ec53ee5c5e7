package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// waitTime is how long something may take that a page does, on a machine with much else to do.
const waitTime = 3 * time.Minute

// command is the llmsandbox command.
var command string

func TestMain(m *testing.M) { os.Exit(withCommand(m)) }

func withCommand(m *testing.M) int {
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if dir, err = testcommand.In(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	command = filepath.Join(dir, "llmsandbox")
	return m.Run()
}

// require skips a test that cannot run on this machine, or fails it where everything ought to be there.
func require(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("LLMSANDBOX_REQUIRE") == "1":
		t.Fatalf("cannot run here: %v", err)
	default:
		t.Skip(err)
	}
}

// A server is a `llmsandbox serve` of the test's own.
type server struct {
	t            *testing.T
	env          []string
	address, key string
	link         string // the path that logs in once
	issuer       string // of logins, whose pages may be shown, too
}

var (
	serving = regexp.MustCompile(`serving on (\S+?)(?:; the key, until it ends, is (\S+))?$`)
	opening = regexp.MustCompile(`open http\S+(/login#\S+) `)
)

// serve starts a server, which ends with the test. It has keys of the named projects, or else one of its own.
func serve(t *testing.T, projects ...string) (s *server, keys []string) {
	t.Helper()
	return serveWith(t, nil, projects...)
}

// serveWith is serve, with more flags.
func serveWith(t *testing.T, flags []string, projects ...string) (s *server, keys []string) {
	t.Helper()
	state, err := os.MkdirTemp("", "lsc") // its path must be short for sockets
	if err != nil {
		t.Fatal(err)
	}
	// Of several Pythons, that of the system has the libraries for plots.
	s = &server{t: t, env: append(os.Environ(), "LLMSANDBOX_STATE_DIR="+state, "PATH=/usr/bin:"+os.Getenv("PATH"))}
	t.Cleanup(func() {
		if left := strings.Fields(s.run("ls", "--quiet")); len(left) > 0 {
			s.run(append([]string{"rm"}, left...)...)
		}
		s.run("gc") // what was kept ready
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	for _, project := range projects {
		keys = append(keys, strings.TrimSpace(s.run("serve", "key", "create", project, "--project", project)))
	}
	cmd := exec.Command(command, append([]string{"serve", "--listen", "127.0.0.1:0", "--best-effort", "--warm", "1", "--warm-language", "bash"}, flags...)...)
	cmd.Env = s.env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var logged sync.WaitGroup
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		logged.Wait()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for s.address == "" || s.key != "" && s.link == "" {
		if !lines.Scan() {
			t.Fatalf("the server ended: %v", lines.Err())
		}
		if found := serving.FindStringSubmatch(lines.Text()); found != nil {
			s.address, s.key = found[1], found[2]
		} else if found := opening.FindStringSubmatch(lines.Text()); found != nil {
			s.link = found[1]
		} else {
			t.Log(lines.Text())
		}
	}
	logged.Go(func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	})
	return s, keys
}

// run runs the command to its end.
func (s *server) run(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Env = s.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Errorf("%v: %v: %s", args, err, errs.String())
	}
	return string(out)
}

// ask sends a request with a key and returns the answer's body.
func (s *server) ask(key, method, path, body string) string {
	s.t.Helper()
	status, text := s.send(key, method, path, body)
	if status >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// send is ask for a request that may fail.
func (s *server) send(key, method, path, body string) (status int, answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A page is a tab of a browser that has nothing of any other.
type page struct {
	context.Context
	t *testing.T
	s *server
}

// size is that of a page's window, in CSS pixels.
type size struct{ width, height int64 }

var (
	desktop = size{1280, 800}
	phone   = size{390, 844}
)

// browse opens a page, which closes with the test. The test fails if the page breaks its own policy, throws, or asks another host for something.
func (s *server) browse() *page {
	t := s.t
	t.Helper()
	path, err := exec.LookPath("chromium")
	require(t, err)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(int(desktop.width), int(desktop.height)), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(context.Background(), 5*waitTime)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{ctx, t, s}
	err = chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw: %s: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *log.EventEntryAdded:
			if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				t.Errorf("the page breaks its policy at %s:%d: %s", e.Entry.URL, e.Entry.LineNumber, e.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			if s.issuer != "" && strings.HasPrefix(e.DocumentURL, s.issuer+"/") {
				break // these are not our pages
			}
			if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != s.address {
				t.Errorf("the page asks for %s, want nothing of another host", e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// fatal ends the test with what the page shows.
func (p *page) fatal(err error, doing string) {
	p.t.Helper()
	// The first error is the one to tell.
	text, _ := chromedp.Run(p, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
	p.t.Fatalf("%s: %v; the page has:\n%s", doing, err, text)
}

// open goes to a path of the server.
func (p *page) open(path string) {
	p.t.Helper()
	if err := chromedp.Do(p, chromedp.Navigate(p.s.address+path)); err != nil {
		p.fatal(err, "open "+path)
	}
}

// see waits until an expression of the page is true.
func (p *page) see(expression string, args ...any) {
	p.t.Helper()
	expression = fmt.Sprintf(expression, args...)
	ctx, cancel := context.WithTimeout(p, waitTime)
	defer cancel()
	wait := fmt.Sprintf(`new Promise((done) => { const look = () => { if (%s) done(true); else requestAnimationFrame(look); }; look(); })`, expression)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise)); err != nil {
		p.fatal(err, "wait for "+expression)
	}
}

// seeText waits until an element has a text.
func (p *page) seeText(selector, text string) {
	p.t.Helper()
	p.see(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text)
}

// evaluate returns the value of an expression of the page, which may be a promise.
func evaluate[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.fatal(err, fmt.Sprintf("evaluate %.200s", expression))
	}
	return v
}

// click clicks on the button or link of a name.
func (p *page) click(name string) {
	p.t.Helper()
	at := fmt.Sprintf(`//*[self::button or self::a or self::summary][normalize-space()=%[1]q or @aria-label=%[1]q]`, name)
	ctx, cancel := context.WithTimeout(p, waitTime)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(at)); err != nil {
		p.fatal(err, "click on "+name)
	}
}

// write types a text into a field.
func (p *page) write(id, text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p, waitTime)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.SendKeys(chromedp.ID(id), text)); err != nil {
		p.fatal(err, "write into "+id)
	}
}

// choose selects an option as a user does.
func (p *page) choose(id, value string) {
	p.t.Helper()
	p.see(`[...document.getElementById(%q)?.options ?? []].some((o) => o.value === %q)`, id, value)
	evaluate[bool](p, fmt.Sprintf(`{ const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("change", { bubbles: true })); }`, id, value))
}

// code pastes code into an editor, in place of what it has.
func (p *page) code(editor, text string) {
	p.t.Helper()
	p.see(`document.querySelector(%q)?.shadowRoot?.querySelector(".cm-content")`, editor)
	p.focus(editor)
	if err := chromedp.Do(p, chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
		p.fatal(err, "select all code")
	}
	evaluate[any](p, fmt.Sprintf(`{ const data = new DataTransfer(); data.setData("text/plain", %q);
		document.querySelector(%q).shadowRoot.querySelector(".cm-content").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); }`, text, editor))
}

// focus gives an editor the keyboard.
func (p *page) focus(editor string) {
	p.t.Helper()
	evaluate[any](p, fmt.Sprintf(`document.querySelector(%q).shadowRoot.querySelector(".cm-content").focus()`, editor))
}

// press types keys into what has the keyboard.
func (p *page) press(keys string, opts ...chromedp.KeyOption) {
	p.t.Helper()
	if err := chromedp.Do(p, chromedp.KeyEvent(keys, opts...)); err != nil {
		p.fatal(err, "press keys")
	}
}

// screen is an expression for what a terminal shows.
const screen = `[...document.querySelectorAll(".xterm-rows > div")].map((e) => e.textContent.replaceAll("\u00a0", " ")).join("\n")`

// openTerminal opens one in a new sandbox.
func (p *page) openTerminal() {
	p.t.Helper()
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(p.s.ask(p.s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)), &sb); err != nil {
		p.t.Fatal(err)
	}
	p.open("/sandboxes/" + sb.ID)
	p.click("Terminal")
	p.see(`!!document.querySelector(".tiles") && ![...document.querySelectorAll(".tiles dd")].some((e) => e.textContent.startsWith("…"))`) // what comes late moves the button
	p.click("Open")
	p.seeText(".terminal-pane .badge", "open")
}

// line types a line into a terminal.
func (p *page) line(text string) {
	p.t.Helper()
	evaluate[any](p, `document.querySelector(".terminal textarea").focus()`)
	_, err := chromedp.Call(p, input.InsertText, input.InsertTextParams{Text: text})
	if err != nil {
		p.fatal(err, "type "+text)
	}
	p.enter(0)
}

// enter presses Enter with another key. A KeyEvent of chromedp would bring the character also where the page has taken the key.
func (p *page) enter(with chromedp.Modifier) {
	p.t.Helper()
	p.key(input.DispatchKeyEventParams{Modifiers: int64(with), Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13})
}

// ctrl presses a letter with Ctrl.
func (p *page) ctrl(letter string) {
	p.t.Helper()
	upper := strings.ToUpper(letter)
	p.key(input.DispatchKeyEventParams{Modifiers: int64(chromedp.ModifierCtrl), Key: letter, Code: "Key" + upper, WindowsVirtualKeyCode: int64(upper[0])})
}

// key presses a key and lets go of it.
func (p *page) key(key input.DispatchKeyEventParams) {
	p.t.Helper()
	key.Type = input.DispatchKeyEventTypeKeyDown
	_, err := chromedp.Call(p, input.DispatchKeyEvent, key)
	if err == nil {
		key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
		_, err = chromedp.Call(p, input.DispatchKeyEvent, key)
	}
	if err != nil {
		p.fatal(err, "press "+key.Key)
	}
}

// login opens the console with a key.
func (p *page) login(key string) {
	p.t.Helper()
	p.open("/")
	p.write("key", key+"\r")
	p.see(`document.querySelector("nav")`)
}

// resize gives the page a size and a theme.
func (p *page) resize(s size, theme string) {
	p.t.Helper()
	_, err := chromedp.Call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1})
	if err == nil {
		_, err = chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
	}
	if err != nil {
		p.fatal(err, "resize")
	}
	p.see(`document.documentElement.dataset.theme === %q && innerWidth === %d`, theme, s.width)
}
