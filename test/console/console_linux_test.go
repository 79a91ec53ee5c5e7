package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const web = "../../web"

// TestLogin: the link that the server prints logs a browser in once; a key does always, until the logout.
func TestLogin(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.open(s.link)
	p.see(`document.querySelector("nav")`)
	if at := evaluate[string](p, `location.href`); at != s.address+"/" {
		t.Errorf("the page is at %s, want no token in its address", at)
	}
	if cookies := evaluate[string](p, `document.cookie`); cookies != "" {
		t.Errorf("the page sees the cookie %q, want none", cookies)
	}
	again := s.browse()
	again.open(s.link)
	again.seeText(`[role="alert"]`, "used before")
	again.write("key", "wrong\r")
	again.seeText(`[role="alert"]`, "not one of this server's")
	again.login(s.key)
	again.click("Log out")
	again.see(`document.querySelector("#key")`)
	again.open("/")
	again.see(`document.querySelector("#key")`)
}

// TestPlayground: code runs with its input as the output comes, is stopped, and is shared as programs that work.
func TestPlayground(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.see(`document.querySelectorAll("#language option").length >= 8`)
	for _, language := range []string{"python", "javascript", "java", "cpp", "go", "r", "ruby", "bash"} {
		p.choose("language", language)
		p.see(`[...document.querySelector(".editor").shadowRoot.querySelectorAll(".cm-line span")].some((e) => getComputedStyle(e).color !== getComputedStyle(e.closest(".cm-content")).color)`)
	}
	p.click("Input")
	p.write("stdin", "it's in")
	p.code(".editor", "read x; printf 'got \\033[31m%s\\033[0m\\n' \"$x\"; echo wrong >&2; exit 3")
	p.enter(chromedp.ModifierCtrl)
	p.seeText(".status-line .badge", "error")
	p.seeText(".status-line", "exit code 3")
	p.seeText(".output .fg-red", "it's in")
	p.seeText(".output .stderr", "wrong")

	p.code(".editor", "echo begun; sleep 1000")
	p.click("Run")
	p.seeText(".output pre", "begun")
	p.click("Stop")
	p.seeText(".notice", "Stopped")

	p.code(".editor", "cat; echo \"'\\\"$((6*7))\"")
	p.click("Share")
	env := append(os.Environ(), "LLMSANDBOX_KEY="+s.key)
	for _, as := range []struct {
		name string
		run  func(file string) *exec.Cmd
	}{
		{"curl", func(file string) *exec.Cmd { return exec.Command("bash", file) }},
		{"Go", func(file string) *exec.Cmd { return exec.Command("go", "run", file) }},
		{"Python", func(file string) *exec.Cmd { return exec.Command("python3", file) }},
	} {
		p.click(as.name)
		p.see(`document.querySelector(".snippet").getAttribute("aria-label") === "As %s"`, as.name)
		file := filepath.Join(t.TempDir(), "shared.go")
		if err := os.WriteFile(file, []byte(evaluate[string](p, `document.querySelector(".snippet").textContent`)), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := as.run(file)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("it's in")) || !bytes.Contains(out, []byte("42")) || !bytes.Contains(out, []byte("ok")) {
			t.Errorf("as %s: %v: %s, want what the code prints", as.name, err, out)
		}
	}
}

// TestKeyboard: the keyboard gets into the editor and out of it, and to all that a page has.
func TestKeyboard(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	press := p.press
	const active = `(document.activeElement.ariaLabel || document.activeElement.className || document.activeElement.textContent).trim()`
	p.code(".editor", "echo typed")
	press(kb.Tab)
	if at := evaluate[string](p, active); at != "editor" {
		t.Errorf("Tab goes to %q, want that it indents", at)
	}
	press(kb.Escape + kb.Tab)
	if at := evaluate[string](p, active); at != "Input" {
		t.Errorf("Escape and Tab go to %q, want what comes after the editor", at)
	}
	evaluate[any](p, `document.activeElement.blur()`)
	p.open("/")
	p.see(`document.querySelector("#language option + option")`)
	evaluate[any](p, `document.activeElement.blur()`)
	var reached []string
	for range 20 {
		press(kb.Tab)
		reached = append(reached, evaluate[string](p, active))
	}
	for _, name := range []string{"skip", "Playground", "Notebook", "Sandboxes", "Pools", "Audit", "Settings", "Log out", "Share", "primary"} {
		if !slices.Contains(reached, name) {
			t.Errorf("Tab reaches %q, want %s among them", reached, name)
		}
	}
}

// TestHostileOutput: whatever a program prints is text, and no amount of it stops the page.
func TestHostileOutput(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.choose("language", "bash")
	run := func(code string) {
		t.Helper()
		p.code(".editor", code)
		p.click("Run")
		p.see(`document.querySelector(".status-line .badge")`)
	}
	markup := `<script>hacked=1</script><img src=x onerror=hacked=1><svg onload=hacked=1><a href=javascript:hacked=1>x</a></pre><h1>y</h1>`
	run("cat <<'E'\n" + markup + "\nE")
	p.seeText(".output pre", markup)
	run(`printf '\033]8;;http://evil.example\033\\link\033]8;;\033\\ \033]0;title\007\033[2J\033[31mred\033[0m\033[38;5;999mx\033[999999999999999m \xe2\x80\xaegnp.exe \033[' ; printf '\0\a\033'`)
	p.seeText(".output pre", "link ")
	p.seeText(".output .fg-red", "red")
	p.seeText(".output pre", "⟨U+202E⟩gnp.exe")
	p.seeText(".output pre", "\u2400\u2407")
	if bad := evaluate[bool](p, `"hacked" in window || document.querySelector(".output :is(script, img, svg, a, h1)") !== null || document.title.includes("title")`); bad {
		t.Error("the page took output for more than text")
	}
	run(`head -c 9000000 /dev/zero | tr '\0' '<'; echo; echo the end`)
	p.seeText(".output pre", "the end")
	p.seeText(".output .note", "Only the end is shown")
	if length := evaluate[int](p, `document.querySelector(".output").textContent.length`); length > 300_000 {
		t.Errorf("the page has %d characters of output, want a bounded end of it", length)
	}
	run(`for i in $(seq 60000); do printf '\033[3%dm%d\033[0m' $((i % 8)) $((i % 10)); done; echo; echo the end`)
	p.seeText(".output pre", "the end")
	if spans := evaluate[int](p, `document.querySelectorAll(".output span").length`); spans > 60_000 {
		t.Errorf("the page has %d elements for output, want a bounded number", spans)
	}
}

// TestSandboxes: a sandbox is made, gets files and gives them back, runs a line, and is removed.
func TestSandboxes(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.click("Sandboxes")
	p.seeText(".empty", "There are no sandboxes")
	p.click("New sandbox")
	p.choose("new-language", "bash")
	p.write("name", "<b>mine</b>")
	p.click("Create")
	p.seeText(".badge.label", "name: <b>mine</b>")
	p.seeText(".tile", "ends in")

	dir := t.TempDir()
	file := filepath.Join(dir, "data.csv")
	if err := os.WriteFile(file, []byte("<script>hacked=1</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(p, chromedp.SetUploadFiles(chromedp.ID("upload"), []string{file}, chromedp.NodeReady)); err != nil {
		p.fatal(err, "upload")
	}
	p.click("data.csv")
	p.seeText("dialog pre", "<script>hacked=1</script>")
	p.click("Close")
	p.write("line", "cat data.csv >'<img src=x onerror=hacked=1>'; mkdir d; echo done\r")
	p.seeText(".output pre", "done")
	p.click("Refresh")
	p.seeText(".entries .name", "<img src=x onerror=hacked=1>")
	if evaluate[bool](p, `"hacked" in window || document.querySelector(".entries img") !== null`) {
		t.Error("the page took a file's name or content for more than text")
	}

	saved := make(chan browser.DownloadProgressState, 100)
	err := chromedp.ListenBrowser(p, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok {
			saved <- e.State
		}
	})
	if err == nil {
		_, err = chromedp.CallBrowser(p, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: t.TempDir(), EventsEnabled: new(true)})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.click("Download data.csv")
	for state := range saved {
		if state == browser.DownloadProgressStateCanceled {
			t.Error("the download was canceled, want the file")
		}
		if state != browser.DownloadProgressStateInProgress {
			break
		}
	}

	p.click("d")
	p.seeText(".files .empty", "Nothing is here")
	p.click("Top")
	p.click("Remove data.csv")
	p.click("Remove it")
	p.see(`![...document.querySelectorAll(".entries .name")].some((e) => e.textContent === "data.csv")`)
	p.click("Pause")
	p.seeText(".notice", "is paused")
	p.click("Resume")
	p.see(`![...document.querySelectorAll(".notice")].some((e) => e.textContent.includes("paused"))`)
	p.click("Remove")
	p.click("Remove it")
	p.seeText(".empty", "There are no sandboxes")
}

// TestLive: what others make, change and remove appears on the pages that show it, which read nothing of a page that is hidden.
func TestLive(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.click("Sandboxes")
	p.seeText(".empty", "There are no sandboxes")
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash", "lifetime_seconds": 600, "labels": {"a": "<b>&amp;</b>"}}`)), &sb); err != nil {
		t.Fatal(err)
	}
	p.seeText(".sandbox .id", sb.ID)
	p.seeText(".sandbox .label", "a: <b>&amp;</b>")
	p.seeText(".sandbox", "ends in 10 min")
	s.ask(s.key, http.MethodPatch, "/v1/sandboxes/"+sb.ID, `{"lifetime_seconds": 7200}`)
	p.seeText(".sandbox", "ends in 2 h")
	evaluate[any](p, `document.querySelector(".sandbox").click()`)
	p.see(`document.querySelectorAll(".chart .line").length === 2`)
	s.ask(s.key, http.MethodPost, "/v1/sandboxes/"+sb.ID+"/exec", `{"shell": "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"}`)
	p.see(`/at most (\d\d|\d+ %%)/.test(document.querySelectorAll(".chart svg")[1].ariaLabel)`)
	s.ask(s.key, http.MethodDelete, "/v1/sandboxes/"+sb.ID, "")
	p.seeText(".notice", "no sandbox of your project")
	s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash", "lifetime_seconds": 3}`)
	p.click("Sandboxes")
	p.see(`document.querySelector(".sandbox")`)
	p.seeText(".empty", "There are no sandboxes")
}

// listen starts a server in a new sandbox.
func (p *page) listen() (id string) {
	p.t.Helper()
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(p.s.ask(p.s.key, http.MethodPost, "/v1/sandboxes", `{"language": "python"}`)), &sb); err != nil {
		p.t.Fatal(err)
	}
	p.s.ask(p.s.key, http.MethodPost, "/v1/sandboxes/"+sb.ID+"/processes", `{"argv": ["python3", "-m", "http.server", "8000"]}`)
	return sb.ID
}

// opens clicks on something and waits until a tab of its own has that address.
func (p *page) opens(name, address string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p, waitTime)
	defer cancel()
	seen := make(chan string, 100)
	err := chromedp.ListenBrowser(p, func(event any) {
		if e, ok := event.(*target.EventTargetInfoChanged); ok && ctx.Err() == nil {
			seen <- e.TargetInfo.URL
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.click(name)
	for {
		select {
		case got := <-seen:
			if got == address {
				return
			}
			p.t.Logf("a tab is at %s", got)
		case <-ctx.Done():
			p.fatal(ctx.Err(), "wait for a tab at "+address)
		}
	}
}

// TestPorts: what listens in a sandbox is listed, opened and shared, by names below a domain or by its path.
func TestPorts(t *testing.T) {
	s, _ := serveWith(t, []string{"--ports-domain", "localhost"})
	p := s.browse()
	p.login(s.key)
	id := p.listen()
	p.open("/sandboxes/" + id)
	p.click("Ports")
	p.seeText(".ports .badge", "8000")
	p.click("Share 8000")
	p.choose("lasts", "10 minutes")
	p.click("Make the address")
	p.see(`document.getElementById("address")`)
	u, err := url.Parse(evaluate[string](p, `document.getElementById("address").value`))
	if err != nil {
		t.Fatal(err)
	}
	status := func(address string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = u.Host
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := status(u.RequestURI()); got != http.StatusSeeOther {
		t.Errorf("%s: %d, want that anybody can use it", u, got)
	}
	if got := status("/"); got != http.StatusUnauthorized {
		t.Errorf("without the link: %d, want that it is private", got)
	}
	p.click("Close")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.address, "http://"), ":")
	p.opens("Open 8000", "http://8000-"+id+".localhost:"+port+"/") // and no token is left in the address

	plain, _ := serve(t)
	p = plain.browse()
	p.login(plain.key)
	id = p.listen()
	p.open("/sandboxes/" + id + "#ports")
	p.seeText(".ports .notice", "no domain for ports")
	p.seeText(".ports .badge", "8000")
	path := "/v1/sandboxes/" + id + "/ports/8000/"
	p.opens("Open 8000", plain.address+path)
	if text := evaluate[string](p, fmt.Sprintf(`fetch(%q).then((r) => r.text())`, path)); !strings.Contains(text, "Directory listing") {
		t.Errorf("there is %q, want what is served", text)
	}
}

// TestPools: the page tells what is kept ready, and what becomes of it as programs take it.
func TestPools(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.click("Pools")
	p.seeText(".badge", "Bash × 1")
	tile := func(name, text string) {
		t.Helper()
		p.see(`[...document.querySelectorAll(".tile")].some((e) => e.querySelector("dt").textContent.startsWith(%q) && e.querySelector("dd").textContent.startsWith(%q))`, name, text)
	}
	tile("Ready", "1 of 1")
	tile("Hit rate", "no programs yet")
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/v1/run", strings.NewReader(`{"language": "bash", "code": "sleep 1000"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() { _, err := http.DefaultClient.Do(r); done <- err }() //nolint:bodyclose // it is given up
	tile("In use", "1 ")
	tile("Hits", "1 ")
	tile("Hit rate", "100 %")
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tile("In use", "0 ")
	p.see(`document.querySelector(".chart svg").ariaLabel.endsWith("at least 0, at most 1")`)
}

// TestSettings: the page tells who has logged in, and what is chosen there counts for the browser from then on.
func TestSettings(t *testing.T) {
	s, keys := serve(t, "a")
	looks := strings.TrimSpace(s.run("serve", "key", "create", "looks", "--project", "a", "--scope", "read"))
	s.ask(keys[0], http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)
	p := s.browse()
	p.login(looks)
	p.resize(desktop, "light")
	p.click("Settings")
	p.seeText(".tile", "Keylooks")
	p.seeText(".tile", "Project")
	p.seeText(".tile", "Scopesread")
	p.seeText(".tile", "Sandboxes1 of 64")
	pick := func(value string) {
		t.Helper()
		if err := chromedp.Do(p, chromedp.Click(fmt.Sprintf(`//label[input[@value=%q]]`, value))); err != nil {
			p.fatal(err, "choose "+value)
		}
	}
	theme := func(want string) {
		t.Helper()
		p.see(`document.documentElement.dataset.theme === %q`, want)
	}
	theme("light")
	pick("dark")
	theme("dark")
	p.press(kb.ArrowLeft) // as radio buttons do
	theme("light")
	p.see(`document.activeElement.value === "light"`)
	p.press(kb.ArrowRight)
	theme("dark")
	pick("UTC")
	p.choose("default-language", "ruby")
	p.open("/settings")
	theme("dark")
	p.see(`document.querySelector("input[value=UTC]")?.checked && document.getElementById("default-language").value === "ruby"`)
	pick("system")
	theme("light")
	p.click("Playground")
	p.see(`document.getElementById("language").value === "ruby"`)
	p.click("Sandboxes")
	p.seeText(".sandbox", "UTC")
	p.click("Settings")
	evaluate[any](p, `[...document.querySelectorAll("main button")].find((e) => e.textContent.trim() === "Log out").click()`)
	p.see(`document.querySelector("#key")`)
}

// TestTerminal: a shell has the size of the page, outlives a reload, and ends, and the keyboard gets into it and out of it.
func TestTerminal(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.openTerminal()
	p.see(`document.activeElement.ariaLabel === "Terminal"`)
	p.line("kept=4; stty size")
	size := regexp.MustCompile(`\n\s*\d+ \d+`)
	p.see(`/\n\s*\d+ \d+/.test(%s)`, screen)
	wide := size.FindString(evaluate[string](p, screen))
	p.resize(phone, "light")
	p.line("clear; stty size; echo res'ized'")
	p.see(`%s.includes("resized")`, screen)
	if narrow := size.FindString("\n" + evaluate[string](p, screen)); narrow == wide {
		t.Errorf("the terminal is %q on a wide page and %q on a narrow one, want different sizes", wide, narrow)
	}
	p.resize(desktop, "light")
	p.line("clear; while :; do date +%s; sleep 1; done")
	p.see(`/\d{9}/.test(%s)`, screen)
	p.ctrl("c")
	p.line("clear; echo stop''ped")
	p.see(`%s.includes("stopped")`, screen)

	p.open(evaluate[string](p, `location.pathname + location.hash`))
	p.seeText(".terminal-pane .badge", "open")
	p.line("echo ${kept}2 a''gain")
	p.see(`%s.includes("42 again")`, screen)
	p.ctrl("m")
	p.see(`document.activeElement.textContent.trim() === "End"`)
	p.line("exit 3")
	p.seeText(".terminal-pane .status-line", "exit code 3")
	p.click("Open")
	p.seeText(".terminal-pane .badge", "open")
	p.click("End")
	p.seeText(".terminal-pane .status-line", "killed")
}

// TestHostileTerminal: what a program says to a terminal changes its screen, and nothing else of the page or the browser.
func TestHostileTerminal(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.openTerminal()
	opened := 0
	err := chromedp.ListenBrowser(p, func(event any) {
		if _, ok := event.(*target.EventTargetCreated); ok {
			opened++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p.line(`clear; stty -echo; printf '\033]8;;http://evil.example\033\\link\033]8;;\033\\ \033]0;ti''tle\007\033]52;c;aGFja2Vk\007\033[8;3;3t\033[21t\033[3;1;1t<b>bold</b>\033[38;2;200;10;10mtrue\033[0m\033[31mred\033[0m\033[6n\033[c\n\0\a'; sleep 0.1; echo d''one`)
	p.see(`%s.includes("done")`, screen)
	text := evaluate[string](p, screen)
	if !strings.Contains(text, "link <b>bold</b>truered") {
		t.Errorf("the screen shows %q, want the text as it is", text)
	}
	if styles := evaluate[string](p, `(() => { const of = (text) => getComputedStyle([...document.querySelectorAll(".xterm-rows span")].find((e) => e.textContent === text)).color; return of("true") + " " + of("red"); })()`); styles != "rgb(200, 10, 10) rgb(179, 32, 27)" {
		t.Errorf("the colours are %s, want those that the program has chosen", styles)
	}
	if err := chromedp.Do(p, chromedp.Click(`.xterm-rows > div`)); err != nil {
		p.fatal(err, "click on the screen")
	}
	if bad := evaluate[[]bool](p, `[document.title.includes("title"), document.querySelector(".terminal :is(b, a, script, style)") !== null, document.querySelectorAll(".xterm-rows > div").length < 10]`); slices.Contains(bad, true) {
		t.Errorf("title, elements, size: %v, want output to change none of them", bad)
	}
	p.line(`clear; head -c 9000000 /dev/zero | tr '\0' '<'; echo; for i in $(seq 20000); do printf '\033]8;;http://e%d\033\\\033[3%dmx\033[0m' $i $((i % 8)); done; echo; echo the e''nd`)
	p.see(`%s.includes("the end")`, screen)
	if rows := evaluate[int](p, `document.querySelectorAll(".xterm-rows *").length`); rows > 20_000 {
		t.Errorf("the screen has %d elements, want a bounded number", rows)
	}
	if opened > 0 {
		t.Errorf("the browser opened %d pages, want none", opened)
	}
}

// TestNotebook: cells share a state, show values and errors, and are interrupted; a kernel is restarted, and outlives a reload of the page.
func TestNotebook(t *testing.T) {
	s, _ := serve(t)
	p := s.browse()
	p.login(s.key)
	p.click("Notebook")
	p.choose("notebook-language", "python")
	p.click("Start")
	cell := func(n int) string { return fmt.Sprintf(`[aria-label="Cell %d"]`, n) }
	run := func(n int, code string) {
		t.Helper()
		p.see(`document.querySelector(%q) && !document.querySelector(%q).disabled`, cell(n), fmt.Sprintf(`[aria-label="Run cell %d"]`, n))
		p.code(cell(n)+" .editor", code)
		p.enter(chromedp.ModifierShift)
	}
	run(1, "x = 20; print('<b>printed</b>')")
	p.seeText(cell(1)+" .output pre", "<b>printed</b>")
	run(2, "x + 1")
	p.seeText(cell(2)+" .value", "21")
	if code := evaluate[string](p, fmt.Sprintf(`document.querySelector(%q).shadowRoot.querySelector(".cm-content").innerText`, cell(2)+" .editor")); code != "x + 1" {
		t.Errorf("the code is %q, want nothing added to it by the key that runs it", code)
	}
	run(3, "1 / 0")
	p.seeText(cell(3)+" .value", "ZeroDivisionError")
	p.seeText(cell(3)+" .badge", "error")
	run(4, "import time\nprint('begun')\nwhile True: time.sleep(0.1)")
	p.seeText(cell(4)+" .output pre", "begun")
	p.click("Interrupt")
	p.seeText(cell(4)+" .value", "KeyboardInterrupt")
	p.open("/notebook")
	run(5, "x + 2")
	p.seeText(cell(5)+" .value", "22")
	p.click("Restart")
	p.see(`![...document.querySelectorAll("button")].find((e) => e.textContent.trim() === "Restart").disabled`)
	p.code(cell(6)+" .editor", "x")
	p.enter(chromedp.ModifierShift)
	p.seeText(cell(6)+" .value", "NameError")
	p.click("End")
	p.click("End it")
	p.see(`document.querySelector("#notebook-language")`)
	if list := s.ask(s.key, http.MethodGet, "/v1/sandboxes", ""); !strings.Contains(list, `"sandboxes":[]`) {
		t.Errorf("sandboxes are left: %s", list)
	}
}

// TestProjects: two projects do not see each other's sandboxes, and who may only look can change nothing.
func TestProjects(t *testing.T) {
	s, keys := serve(t, "a", "b")
	looks := strings.TrimSpace(s.run("serve", "key", "create", "looks", "--project", "a", "--scope", "read"))
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(s.ask(keys[0], http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)), &sb); err != nil {
		t.Fatal(err)
	}
	a, b, reads := s.browse(), s.browse(), s.browse()
	a.login(keys[0])
	a.click("Sandboxes")
	a.seeText(".id", sb.ID)
	b.login(keys[1])
	b.click("Sandboxes")
	b.seeText(".empty", "There are no sandboxes")
	b.open("/sandboxes/" + sb.ID)
	b.seeText(".notice", "no sandbox of your project")
	reads.login(looks)
	reads.see(`[...document.querySelectorAll("button")].find((e) => e.textContent.trim() === "Run").disabled`)
	reads.open("/sandboxes/" + sb.ID)
	reads.see(`[...document.querySelectorAll("button")].find((e) => e.textContent.trim() === "Remove")?.disabled`)
	s.run("serve", "key", "revoke", "looks")
	reads.open("/")
	reads.see(`document.querySelector("#key")`)
}

// TestReference: the page of the API has each operation of the server's document, to those who have not logged in, too.
func TestReference(t *testing.T) {
	s, _ := serve(t)
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(s.ask(s.key, http.MethodGet, "/openapi.json", "")), &doc); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, methods := range doc.Paths {
		for _, op := range methods {
			want = append(want, op.OperationID)
		}
	}
	p := s.browse()
	p.open("/reference#run-in-sandbox")
	p.see(`document.querySelector("#run-in-sandbox[open] .snippet")`)
	if got := evaluate[[]string](p, `[...document.querySelectorAll(".operation")].map((e) => e.id)`); len(got) == 0 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the page has %q, want %q", got, want)
	}
	p.seeText("#run-in-sandbox .snippet", `"code": "print(1)"`)
	evaluate[any](p, `document.querySelectorAll("details").forEach((e) => { e.open = true; })`) // all operations, and what is in them after that
	p.see(`document.querySelectorAll(".operation .snippet").length === %d`, len(want))
	for range 3 {
		evaluate[any](p, `new Promise((done) => { document.querySelectorAll("details").forEach((e) => { e.open = true; }); requestAnimationFrame(() => requestAnimationFrame(done)); })`)
	}
	p.seeText("#run .body", "peak_memory_bytes")
	p.open("/reference")
	p.see(`document.querySelector("input[type=search]")`)
	evaluate[any](p, `{ const e = document.querySelector("input[type=search]"); e.value = "delete kernel"; e.dispatchEvent(new Event("input", { bubbles: true })); }`)
	p.see(`[...document.querySelectorAll(".operation")].every((e) => e.textContent.includes("kernels")) && document.querySelectorAll(".operation").length === 1`)
	p.click("Log in")
	p.write("key", s.key+"\r")
	p.see(`document.querySelector("nav")`)
	p.click("API")
	p.see(`document.querySelector("nav") && document.querySelector(".operation")`)
}

// TestAudit: what was done is found by what it was, whose and when, page by page, to keys with the scope audit, and nothing of another project.
func TestAudit(t *testing.T) {
	s, keys := serve(t, "a", "b")
	audits := strings.TrimSpace(s.run("serve", "key", "create", "audits", "--project", "a", "--scope", "audit", "--scope", "read"))
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(s.ask(keys[0], http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)), &sb); err != nil {
		t.Fatal(err)
	}
	s.ask(keys[1], http.MethodPost, "/v1/run", `{"language": "bash", "code": "true"}`)
	for range 120 {
		s.ask(keys[0], http.MethodPost, "/v1/sandboxes/"+sb.ID+"/files/mkdir?path=d", "")
	}
	hostile := "<img src=x onerror=hacked=1>"
	s.send(keys[0], http.MethodPost, "/v1/sandboxes/"+url.PathEscape(hostile)+"/reset", "")
	p := s.browse()
	p.login(audits)
	p.click("Audit")
	p.seeText("tbody code", hostile)
	p.seeText("tbody .badge", "not_found")
	rows := `document.querySelectorAll("tbody tr").length`
	p.see(`%s === 100`, rows)
	p.click("Older")
	p.see(`%s === 123`, rows)
	if evaluate[bool](p, `"hacked" in window || document.querySelector("tbody img") !== null || [...document.querySelectorAll("tbody .link")].some((e) => e.textContent === "run") || !document.querySelector('[role="status"]').textContent.startsWith("123 entries")`) {
		t.Error("the page took an entry for more than text, or has another project's")
	}
	p.write("audit-operation", "create-sandbox\r")
	p.see(`%s === 1 && document.querySelector("tbody").textContent.includes(%q)`, rows, sb.ID)
	p.click("Clear")
	p.see(`%s === 100`, rows)
	p.write("audit-key", "b\r")
	p.seeText(".empty", "Nothing is found")
	p.click("Clear")
	p.see(`%s === 100`, rows)
	p.write("audit-outcome", "not_found\r")
	p.see(`%s === 1`, rows)
	evaluate[any](p, `{ const e = document.querySelector("#audit-until"); e.value = "2020-01-01T00:00"; e.dispatchEvent(new Event("input", { bubbles: true })); }`)
	p.click("Search")
	p.seeText(".empty", "Nothing is found")
	p.click("Clear")
	p.click(sb.ID)
	p.seeText(".badge.accent", "bash")

	other := s.browse()
	other.login(keys[1])
	other.click("Audit")
	other.seeText(".notice", "scope audit")
}

// TestKeys: keys are made, their secrets shown once, and revoked, by who may do that and has just logged in.
func TestKeys(t *testing.T) {
	s, keys := serve(t, "a", "b")
	admin := strings.TrimSpace(s.run("serve", "key", "create", "admin", "--project", "a", "--scope", "admin", "--scope", "read", "--expires", "40d"))
	p := s.browse()
	p.login(admin)
	p.click("Keys")
	p.seeText("tbody", "this session’s")
	p.see(`document.querySelectorAll("tbody tr").length === 2`) // and none of the other project
	p.click("New key")
	p.see(`[...document.querySelectorAll("dialog .check")].map((e) => e.textContent.trim().split(" ")[0]).join() === "read,admin" && [...document.querySelector("#key-days").options].map((o) => o.value).join() === "1,7,30,"`)
	p.write("key-name", "not a name\r")
	p.see(`document.querySelector("#key-name").matches(":invalid")`)
	evaluate[any](p, `document.querySelector("#key-name").value = ""`)
	p.write("key-name", "ci\r")
	p.see(`document.querySelector(".secret")`)
	secret := evaluate[string](p, `document.querySelector(".secret").textContent`)
	s.ask(secret, http.MethodGet, "/v1/sandboxes", "")
	if status, text := s.send(secret, http.MethodGet, "/v1/keys", ""); status != http.StatusForbidden {
		t.Errorf("%d %s, want a key that only reads", status, text)
	}
	p.press(kb.Escape)
	p.see(`!document.querySelector("dialog") && document.querySelectorAll("tbody tr").length === 3`)
	if evaluate[bool](p, fmt.Sprintf(`document.documentElement.innerHTML.includes(%q)`, secret)) {
		t.Error("the page has the secret, want it shown once")
	}
	p.click("New key")
	p.write("key-name", "ci\r")
	p.seeText("dialog .notice", "in use")
	// What the server says to an old session, which httpapi's tests have grown old.
	evaluate[any](p, `{ const ask = window.fetch; window.fetch = (path, init) => init.method !== "POST" || path !== "/v1/keys" ? ask(path, init)
		: Promise.resolve(new Response(JSON.stringify({ status: 403, code: "login_again", detail: "log in again to make a key" }), { status: 403 })); }`)
	p.click("Create")
	p.click("Log in again")
	p.write("key", admin+"\r")
	p.seeText("h1", "Keys")
	p.open("/keys")
	p.click("Revoke ci")
	p.click("Revoke it")
	p.see(`document.querySelectorAll("tbody tr").length === 2`)
	if status, text := s.send(secret, http.MethodGet, "/v1/sandboxes", ""); status != http.StatusUnauthorized {
		t.Errorf("%d %s, want the key revoked", status, text)
	}
	if err := chromedp.Do(p, chromedp.Click(`input[type="checkbox"]`)); err != nil {
		p.fatal(err, "show all")
	}
	p.seeText("tbody", "revoked")
	p.click("Revoke admin")
	p.seeText("dialog", "key of this session")
	p.click("Revoke it")
	p.see(`document.querySelector("#key")`)

	other := s.browse()
	other.login(keys[1])
	other.open("/keys")
	other.seeText(".notice", "scope admin")
	other.seeText(".card code", "serve key create")
	other.see(`!document.querySelector("table")`)
}

// TestUsage: the page shows what the project has used, what is left of it today, and nothing of another project.
func TestUsage(t *testing.T) {
	s, keys := serveWith(t, []string{"--project-cpu-per-day", "10h"}, "a", "b")
	s.ask(keys[0], http.MethodPost, "/v1/run", `{"language": "bash", "code": "for i in 1 2 3; do for j in $(seq 20000); do :; done; done"}`)
	p := s.browse()
	p.login(keys[0])
	p.click("Usage")
	p.see(`document.querySelectorAll("tbody tr").length === 1 && document.querySelectorAll("tbody td")[4].textContent === "Programs 1" && /[1-9]/.test(document.querySelectorAll("tbody td")[1].textContent)`)
	p.see(`[...document.querySelectorAll(".tile")].some((e) => e.textContent.startsWith("CPU time today") && e.textContent.includes("of 10 h")) && !document.body.textContent.includes("Sent today")`)
	p.choose("range", "1")
	p.see(`document.querySelector("th")?.textContent === "Day (UTC)" && document.querySelector("tbody time").textContent === new Date().toISOString().slice(0, 10)`)

	other := s.browse()
	other.login(keys[1])
	other.open("/usage")
	other.seeText(".empty", "Nothing was used")
	other.see(`[...document.querySelectorAll(".tile")].some((e) => e.textContent.trim() === "Programs0")`)
}

// pages are the console's, each with what it has when it is ready.
var pages = []struct{ name, path, ready string }{
	{"playground", "/", `#language option + option`},
	{"notebook-start", "/notebook", `#notebook-language option + option`},
	{"sandboxes", "/sandboxes", `.sandbox`},
	{"reference", "/reference#run", `.operation[open] .snippet`},
	{"sandbox", "/sandboxes/ID", `.page:has(.entries li + li):has(.chart + .chart .line)`},
	{"pools", "/pools", `.chart .line`},
	{"settings", "/settings", `#default-language option + option`},
	{"audit", "/audit", `tbody tr + tr`},
	{"keys", "/keys", `tbody tr + tr`},
	{"usage", "/usage", `tbody tr`},
}

// TestAccessible: axe finds nothing against WCAG AA in any page, light or dark, wide or narrow, and no page is wider than its window.
func TestAccessible(t *testing.T) {
	axe, err := os.ReadFile(web + "/node_modules/axe-core/axe.min.js")
	require(t, err)
	s, _ := serveWith(t, []string{"--ports-domain", "localhost", "--oidc-issuer", "https://issuer.example.org", "--oidc-client-id", "x", "--oidc-grant", "a=sub=x", "--project-cpu-per-day", "10h", "--project-egress-per-day", "10g"}, "a")
	s.key = strings.TrimSpace(s.run("serve", "key", "create", "all", "--project", "a", "--scope", "read", "--scope", "write", "--scope", "audit", "--scope", "admin"))
	p := s.browse()
	p.open("/login?failed=nobody")
	check := func(name string) {
		t.Helper()
		for _, size := range []size{desktop, phone} {
			for _, theme := range []string{"light", "dark"} {
				p.resize(size, theme)
				title := fmt.Sprintf("%s-%d-%s", name, size.width, theme)
				if dir := os.Getenv("LLMSANDBOX_SCREENSHOTS"); dir != "" {
					picture, err := chromedp.Run(p, chromedp.CaptureScreenshot())
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, title+".png"), picture, 0o600); err != nil {
						t.Error(err)
					}
				}
				evaluate[any](p, string(axe)+"; true")
				for _, found := range evaluate[[]string](p, `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then((r) => r.violations.map((v) =>
					v.id + ": " + v.help + v.nodes.slice(0, 3).map((n) => "\n" + n.html + "\n" + n.failureSummary).join("")))`) {
					t.Errorf("%s: %s", title, found)
				}
				if wide := evaluate[int](p, `document.documentElement.scrollWidth`); int64(wide) > size.width {
					t.Errorf("%s: it is %d pixels wide, want no more than %d", title, wide, size.width)
				}
			}
		}
		p.resize(desktop, "light") // on a phone, the pages' links can be above what is to be clicked on
	}
	p.see(`document.querySelector("#key") && document.querySelector(".or")`)
	check("login")
	p.login(s.key)
	var sb struct{ ID string }
	for _, body := range []string{`{"language": "python", "labels": {"user": "anna", "job": "nightly report"}}`, `{"language": "bash"}`} {
		if err := json.Unmarshal([]byte(s.ask(s.key, http.MethodPost, "/v1/sandboxes", body)), &sb); err != nil {
			t.Fatal(err)
		}
	}
	s.ask(s.key, http.MethodPost, "/v1/sandboxes/"+sb.ID+"/exec", `{"shell": "mkdir results; echo x >data.csv; head -c 70000 /dev/zero >model.bin"}`)
	for _, page := range pages {
		p.open(strings.Replace(page.path, "ID", sb.ID, 1))
		p.see(`document.querySelector(%q)`, page.ready)
		check(page.name)
	}
	p.openTerminal()
	p.line(`clear; for i in $(seq 0 7); do printf "\033[3${i}mcolour $i\033[0m \033[1;3${i}mbold\033[0m \033[4${i}m on it \033[0m\n"; done; echo do''ne`)
	p.see(`%s.includes("done")`, screen)
	check("terminal")
	p.open("/sandboxes/" + p.listen() + "#ports")
	p.seeText(".ports .badge", "8000")
	check("ports")
	p.click("Share 8000")
	p.click("Make the address")
	p.see(`document.getElementById("address")`)
	check("share-port")
	p.open("/")
	p.choose("language", "python")
	p.code(".editor", "import matplotlib.pyplot as plt, sys\nfor i in range(8):\n    print(f'\\033[3{i}mcolour {i}\\033[0m')\nplt.plot([1, 3, 2], label='a'); plt.title('A plot'); plt.show()\nprint('warned', file=sys.stderr)\nimport nothing_like_this")
	p.click("Run")
	p.see(`document.querySelector(".picture")`)
	check("result")
	p.click("Data")
	check("data")
	p.click("Share")
	check("share")
	p.open("/sandboxes")
	p.click("New sandbox")
	p.see(`document.querySelector("#new-language option + option")`)
	check("new-sandbox")
	p.open("/keys")
	p.click("New key")
	p.see(`document.querySelector("#key-name")`)
	check("new-key")
	p.write("key-name", "ci\r")
	p.see(`document.querySelector(".secret")`)
	check("made-key")
	p.open("/notebook")
	p.choose("notebook-language", "python")
	p.click("Start")
	p.code(".cell .editor", "import pandas as pd\ntable = pd.DataFrame({'city': ['Oslo', 'Lima'], 'people': [709, 10092]})\nprint('two cities')\ntable")
	p.enter(chromedp.ModifierShift)
	p.seeText(".cell", "Lima")
	p.code(`[aria-label="Cell 2"] .editor`, "1 / 0")
	p.enter(chromedp.ModifierShift)
	p.see(`document.querySelector(".cell .badge")`)
	check("notebook")
}

// TestDist: what is committed is what the sources make.
func TestDist(t *testing.T) {
	_, err := os.Stat(web + "/node_modules")
	require(t, err)
	dir := t.TempDir()
	build := exec.Command("node", "build.mjs", dir)
	build.Dir = web
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	made, committed := tree(t, dir), tree(t, filepath.Join(web, "dist"))
	for name, content := range made {
		if committed[name] != content {
			t.Errorf("dist/%s is not what the sources make: run go generate ./web", name)
		}
	}
	if len(made) != len(committed) {
		t.Errorf("the sources make %d files, and %d are there: run go generate ./web", len(made), len(committed))
	}
}

// tree is the content of all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
