package e2b

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// programs is the client of a sandbox's programs, with JSON as SDKs have it.
func (b *box) programs() programsClient { return programsClient{b} }

// line is what SDKs start for a line of a shell.
func line(text string) *process.StartRequest {
	no := false
	return &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", text}}, Stdin: &no}
}

// events are those of a stream.
type events interface {
	Receive() bool
	Err() error
	Close() error
}

// A following is what a client hears of a program.
type following struct {
	t      *testing.T
	stream events
	event  func() *process.ProcessEvent
	pid    uint32
}

func (b *box) start(ctx context.Context, in *process.StartRequest, headers ...string) (*following, error) {
	b.t.Helper()
	req := connect.NewRequest(in)
	for i := 0; i < len(headers); i += 2 {
		req.Header().Set(headers[i], headers[i+1])
	}
	stream, err := b.programs().Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return begun(b.t, stream, func() *process.ProcessEvent { return stream.Msg().GetEvent() })
}

func (b *box) connect(ctx context.Context, by *process.ProcessSelector) (*following, error) {
	b.t.Helper()
	stream, err := b.programs().Connect(ctx, connect.NewRequest(&process.ConnectRequest{Process: by}))
	if err != nil {
		return nil, err
	}
	return begun(b.t, stream, func() *process.ProcessEvent { return stream.Msg().GetEvent() })
}

// begun takes the first event, which must be start.
func begun(t *testing.T, stream events, event func() *process.ProcessEvent) (*following, error) {
	t.Helper()
	f := &following{t: t, stream: stream, event: event}
	t.Cleanup(func() { _ = stream.Close() })
	if !stream.Receive() {
		return nil, stream.Err()
	}
	if f.pid = event().GetStart().GetPid(); f.pid == 0 {
		t.Fatalf("the first event is %v, want start with a pid", event())
	}
	return f, nil
}

func (b *box) must(f *following, err error) *following {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// until reads output until it has the text, and returns all of it.
func (f *following) until(text string) string {
	f.t.Helper()
	var all strings.Builder
	for f.stream.Receive() {
		all.WriteString(outputOf(f.event()))
		if strings.Contains(all.String(), text) {
			return all.String()
		}
	}
	f.t.Fatalf("output %q and then %v, want %q", all.String(), f.stream.Err(), text)
	return ""
}

func outputOf(e *process.ProcessEvent) string {
	d := e.GetData()
	return string(d.GetStdout()) + string(d.GetStderr()) + string(d.GetPty())
}

// rest reads to the end, and returns the output.
func (f *following) rest() (string, *process.ProcessEvent_EndEvent, error) {
	var all strings.Builder
	var end *process.ProcessEvent_EndEvent
	for f.stream.Receive() {
		if end != nil {
			f.t.Errorf("event %v after the end", f.event())
		}
		all.WriteString(outputOf(f.event()))
		end = f.event().GetEnd()
	}
	return all.String(), end, f.stream.Err()
}

// wantEnd reads to the end, which is to be that.
func (f *following) wantEnd(output string, code int32, status string) {
	f.t.Helper()
	out, end, err := f.rest()
	if err != nil || end == nil {
		f.t.Fatalf("output %q, end %v, error %v; want an end", out, end, err)
	}
	isError := status != "exit status 0"
	if out != output || end.GetExitCode() != code || end.GetExited() != (code >= 0) || end.GetStatus() != status || isError != (end.Error != nil) || isError && end.GetError() != status {
		f.t.Errorf("output %q, end %v; want output %q, code %d and status %q", out, end, output, code, status)
	}
}

func byPID(pid uint32) *process.ProcessSelector {
	return &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: pid}}
}

func byTag(tag string) *process.ProcessSelector {
	return &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}}
}

func wantCode(t *testing.T, err error, code connect.Code, says string) {
	t.Helper()
	if connect.CodeOf(err) != code || err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want %v with %q", err, code, says)
	}
}

// TestProgramEnds: the end is told as Go tells it, after all output.
func TestProgramEnds(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx := testContext(t)
	for text, want := range map[string]struct {
		output string
		code   int32
		status string
	}{
		"echo out; exit 0":                       {"out\n", 0, "exit status 0"},
		"echo err >&2; exit 3":                   {"err\n", 3, "exit status 3"},
		"kill -TERM $$":                          {"", -1, "signal: terminated"},
		"printf '\\303'":                         {"\xc3", 0, "exit status 0"},
		"sleep 1000 & echo left":                 {"left\n", 0, "exit status 0"},
		"head -c 1000000 /dev/zero | tr '\\0' a": {strings.Repeat("a", 1000000), 0, "exit status 0"},
	} {
		t.Run(text, func(t *testing.T) { b.must(b.start(ctx, line(text))).wantEnd(want.output, want.code, want.status) })
	}
	t.Run("pid", func(t *testing.T) {
		f := b.must(b.start(ctx, line("echo $$")))
		f.wantEnd(fmt.Sprintf("%d\n", f.pid), 0, "exit status 0")
	})
	t.Run("left", func(t *testing.T) {
		b.must(b.start(ctx, line("pgrep -c sleep || true"))).wantEnd("1\n", 0, "exit status 0")
	})
}

// TestProgramEnvironment: its user, directory and variables, and what SDKs are told where there is none of them.
func TestProgramEnvironment(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Env: map[string]string{"OF": "sandbox", "OVER": "sandbox"}})
	ctx := testContext(t)
	dir := "dir"
	in := line("mkdir -p ~/dir")
	b.must(b.start(ctx, in)).wantEnd("", 0, "exit status 0")
	in = line("echo $HOME $USER $LOGNAME $E2B_SANDBOX $E2B_SANDBOX_ID $OF $OVER $A; pwd; readlink /proc/self/fd/0")
	in.Process.Envs, in.Process.Cwd = map[string]string{"OVER": "request", "A": "b c"}, &dir
	b.must(b.start(ctx, in)).wantEnd(fmt.Sprintf("/home/user user user true %s sandbox request b c\n/home/user/dir\n/dev/null\n", outerID(b.sandbox.ID())), 0, "exit status 0")
	for _, cwd := range []string{"~/dir", "/home/user/dir"} {
		in = line("pwd")
		in.Process.Cwd = &cwd
		b.must(b.start(ctx, in)).wantEnd("/home/user/dir\n", 0, "exit status 0")
	}
	none := "/no/such"
	in.Process.Cwd = &none
	_, err := b.start(ctx, in)
	wantCode(t, err, connect.CodeInvalidArgument, "cwd '/no/such' does not exist")
	_, err = b.start(ctx, &process.StartRequest{Process: &process.ProcessConfig{Cmd: "no-such-program"}})
	wantCode(t, err, connect.CodeInvalidArgument, "error starting process 'no-such-program'")
	_, err = b.start(ctx, &process.StartRequest{})
	wantCode(t, err, connect.CodeInvalidArgument, "error starting process")
	in = line("true")
	in.Process.Envs = map[string]string{"A=B": ""}
	_, err = b.start(ctx, in)
	wantCode(t, err, connect.CodeInvalidArgument, "A=B")
	as := func(user string) (name, value string) {
		return "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
	}
	name, value := as("nobody-at-all")
	_, err = b.start(ctx, line("true"), name, value)
	wantCode(t, err, connect.CodeUnauthenticated, "invalid username: 'nobody-at-all'")
	name, value = as("user")
	b.must(b.start(ctx, line("echo $USER"), name, value)).wantEnd("user\n", 0, "exit status 0")
	if os.Getuid() == 0 { // only then have sandboxes of this backend a root
		name, value = as("root")
		b.must(b.start(ctx, line("id -u; echo $USER $HOME; pwd"), name, value)).wantEnd("0\nroot /home/user\n/home/user\n", 0, "exit status 0")
	}
}

// TestRootHome: root's home is where its programs begin, if they may enter it.
func TestRootHome(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root's sandboxes have a root")
	}
	for user, want := range map[string]string{"": Home, "root": rootHome} {
		h := serveWith(t, func(core *service.Config, _ *Config) { core.Sandbox.WritableRoot, core.Sandbox.User = true, user })
		b := h.open(llmsandbox.Options{Workdir: Home})
		b.must(b.start(testContext(t), line("mkdir -p /root && chmod 700 /root"))).wantEnd("", 0, "exit status 0")
		as := "Basic " + base64.StdEncoding.EncodeToString([]byte("root:"))
		b.must(b.start(testContext(t), line("pwd"), "Authorization", as)).wantEnd(want+"\n", 0, "exit status 0")
	}
}

// TestProgramInput: a pipe unless the request says otherwise, in order, by one message or many.
func TestProgramInput(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, c := testContext(t), b.programs()
	stdin := func(text string) *process.ProcessInput {
		return &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte(text)}}
	}
	cat := &process.StartRequest{Process: &process.ProcessConfig{Cmd: "cat"}}
	f := b.must(b.start(ctx, cat))
	for _, text := range []string{"one ", "", "two "} {
		if _, err := c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(f.pid), Input: stdin(text)})); err != nil {
			t.Fatal(err)
		}
	}
	in := c.StreamInput(ctx)
	send := func(m *process.StreamInputRequest) {
		if err := in.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{Start: &process.StreamInputRequest_StartEvent{Process: byPID(f.pid)}}})
	for i := range 100 {
		send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Keepalive{Keepalive: &process.StreamInputRequest_KeepAlive{}}})
		send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{Input: stdin(strconv.Itoa(i) + " ")}}})
	}
	if _, err := in.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(f.pid)})); err != nil && connect.CodeOf(err) != connect.CodeNotFound {
			t.Fatal(err)
		}
	}
	want := "one two "
	for i := range 100 {
		want += strconv.Itoa(i) + " "
	}
	f.wantEnd(want, 0, "exit status 0")

	_, err := c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(f.pid), Input: stdin("x")}))
	wantCode(t, err, connect.CodeNotFound, "not found")
	f = b.must(b.start(ctx, line("sleep 1000")))
	for _, input := range []*process.ProcessInput{stdin("x"), {Input: &process.ProcessInput_Pty{Pty: []byte("x")}}} {
		_, err = c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(f.pid), Input: input}))
		wantCode(t, err, connect.CodeFailedPrecondition, "")
	}
	_, err = c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(f.pid)}))
	wantCode(t, err, connect.CodeInvalidArgument, "input")
	in = c.StreamInput(ctx)
	send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{Input: stdin("x")}}})
	_, err = in.CloseAndReceive()
	wantCode(t, err, connect.CodeInvalidArgument, "start")
}

// TestTerminal: its size, another one, and input.
func TestTerminal(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, c := testContext(t), b.programs()
	size := func(rows, cols uint32) *process.PTY {
		return &process.PTY{Size: &process.PTY_Size{Rows: rows, Cols: cols}}
	}
	in := line(`stty -echo; stty size; read -r line; stty size; echo "got $line" >&2; exit 4`)
	in.Pty = size(20, 100)
	f := b.must(b.start(ctx, in))
	f.until("20 100")
	if _, err := c.Update(ctx, connect.NewRequest(&process.UpdateRequest{Process: byPID(f.pid), Pty: size(30, 120)})); err != nil {
		t.Fatal(err)
	}
	_, err := c.Update(ctx, connect.NewRequest(&process.UpdateRequest{Process: byPID(f.pid), Pty: size(1<<16, 1)}))
	wantCode(t, err, connect.CodeInvalidArgument, "large")
	_, err = c.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(f.pid)}))
	wantCode(t, err, connect.CodeFailedPrecondition, "Ctrl+D")
	input := &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte("typed\n")}}
	if _, err := c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(f.pid), Input: input})); err != nil {
		t.Fatal(err)
	}
	out, end, err := f.rest()
	if err != nil || end.GetExitCode() != 4 || !strings.Contains(out, "30 120") || !strings.Contains(out, "got typed") {
		t.Errorf("output %q, end %v, error %v; want the other size, and what was typed", out, end, err)
	}
	f = b.must(b.start(ctx, line("sleep 1000")))
	_, err = c.Update(ctx, connect.NewRequest(&process.UpdateRequest{Process: byPID(f.pid), Pty: size(1, 1)}))
	wantCode(t, err, connect.CodeFailedPrecondition, "no pty")
}

// TestProgramOutlivesClients: it goes on without any, and others follow it by its pid or tag, several at once, also when it has ended.
func TestProgramOutlivesClients(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, c := testContext(t), b.programs()
	tag := "the tag"
	gone, leave := context.WithCancel(ctx)
	f := b.must(b.start(gone, &process.StartRequest{Process: &process.ProcessConfig{Cmd: "bash", Args: []string{"-c", "echo begins; head -c 2000000 /dev/zero; cat"}}, Tag: &tag}))
	f.until("begins")
	leave()
	var followers []*following
	for _, by := range []*process.ProcessSelector{byPID(f.pid), byTag(tag), byTag(tag)} {
		other := b.must(b.connect(ctx, by))
		if other.pid != f.pid {
			t.Errorf("pid %d, want %d", other.pid, f.pid)
		}
		followers = append(followers, other)
	}
	list, err := c.List(ctx, connect.NewRequest(&process.ListRequest{}))
	if err != nil || len(list.Msg.GetProcesses()) != 1 {
		t.Fatalf("list %v, error %v; want one program", list, err)
	}
	if p := list.Msg.GetProcesses()[0]; p.GetPid() != f.pid || p.GetTag() != tag || p.GetConfig().GetCmd() != "bash" || len(p.GetConfig().GetArgs()) != 2 {
		t.Errorf("listed %v, want what was started", p)
	}
	if _, err := c.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byTag(tag), Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte("to all")}}})); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byTag(tag)})); err != nil {
		t.Fatal(err)
	}
	for _, f := range followers {
		if out, end, err := f.rest(); err != nil || end == nil || strings.Trim(out, "\x00") != "to all" {
			t.Errorf("%d bytes of output, end %v, error %v; want the input and an end", len(out), end, err)
		}
	}
	b.must(b.connect(ctx, byPID(f.pid))).wantEnd("", 0, "exit status 0")
	_, err = b.connect(ctx, byTag("other"))
	wantCode(t, err, connect.CodeNotFound, `tag "other"`)
	_, err = b.connect(ctx, nil)
	wantCode(t, err, connect.CodeInvalidArgument, "pid")
}

// TestProgramIsKilled: a kill's answer comes when the program is gone with what it has started, and a second one finds none.
func TestProgramIsKilled(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, c := testContext(t), b.programs()
	signal := func(pid uint32, s process.Signal) error {
		_, err := c.SendSignal(ctx, connect.NewRequest(&process.SendSignalRequest{Process: byPID(pid), Signal: s}))
		return err
	}
	f := b.must(b.start(ctx, line("echo up; sleep 1000")))
	f.until("up")
	if err := signal(f.pid, process.Signal_SIGNAL_SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.must(b.start(ctx, line(fmt.Sprintf("kill -0 %d 2>/dev/null || echo gone", f.pid)))).wantEnd("gone\n", 0, "exit status 0")
	wantCode(t, signal(f.pid, process.Signal_SIGNAL_SIGKILL), connect.CodeNotFound, "not found")
	f.wantEnd("", -1, "signal: killed")

	f = b.must(b.start(ctx, line("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done")))
	f.until("up")
	wantCode(t, signal(f.pid, process.Signal_SIGNAL_UNSPECIFIED), connect.CodeInvalidArgument, "only SIGKILL and SIGTERM")
	if err := signal(f.pid, process.Signal_SIGNAL_SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.wantEnd("bye\n", 5, "exit status 5")
	list, err := c.List(ctx, connect.NewRequest(&process.ListRequest{}))
	if err != nil || len(list.Msg.GetProcesses()) > 0 {
		t.Errorf("list %v, error %v; want no program", list, err)
	}
}

// TestProgramTimesOut: at the deadline of its request, also when the client has gone.
func TestProgramTimesOut(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx := t.Context() // the client would send a deadline in place of the header
	const soon = "500"
	for _, text := range []string{"sleep 1000", "trap '' TERM; while :; do echo x; done"} {
		f, err := b.start(ctx, line(text), "Connect-Timeout-Ms", soon)
		if err == nil {
			_, _, err = f.rest()
		}
		wantCode(t, err, connect.CodeDeadlineExceeded, "")
	}
	gone, leave := context.WithCancel(ctx)
	f := b.must(b.start(gone, line("sleep 1000"), "Connect-Timeout-Ms", soon))
	other := b.must(b.connect(ctx, byPID(f.pid)))
	leave()
	if _, end, err := other.rest(); err != nil || end.GetExited() || end.GetExitCode() != -1 || !strings.Contains(end.GetError(), "timeout") {
		t.Errorf("end %v, error %v; want that of a timeout", end, err)
	}
}

// TestStreamOfEndedSandboxBreaks: it does not come to an end that clients would take for the program's.
func TestStreamOfEndedSandboxBreaks(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx := testContext(t)
	f := b.must(b.start(ctx, line("echo up; sleep 1000")))
	f.until("up")
	if err := b.service.Remove(ctx, testProject, b.sandbox.ID()); err != nil {
		t.Fatal(err)
	}
	_, end, err := f.rest()
	var said *connect.Error
	if end != nil || !errors.As(err, &said) || connect.IsWireError(err) {
		t.Errorf("end %v, error %v; want a broken stream", end, err)
	}
	if status, body := b.do("49983", http.MethodGet, "/health", "", ""); status != http.StatusBadGateway {
		t.Errorf("health %d %s, want 502", status, body)
	}
}

// TestStreamShowsThatItLives: as often as the client asks, after the start.
func TestStreamShowsThatItLives(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	f := b.must(b.start(testContext(t), line("sleep 1000"), "Keepalive-Ping-Interval", "1"))
	if !f.stream.Receive() || f.event().GetKeepalive() == nil {
		t.Errorf("event %v, error %v; want keepalive", f.event(), f.stream.Err())
	}
}

// TestProgramsAreBounded: a sandbox has no more than so many, and what has ended is let go.
func TestProgramsAreBounded(t *testing.T) {
	var ps processes
	for range maxPrograms {
		leave, err := ps.begin()
		if err != nil {
			t.Fatal(err)
		}
		ps.add(&program{info: &process.ProcessInfo{}})
		leave()
	}
	_, err := ps.begin()
	wantCode(t, err, connect.CodeResourceExhausted, "64 programs")
	for range maxEnded + 1 {
		p := &program{info: &process.ProcessInfo{}}
		ps.add(p)
		ps.over(p)
	}
	if len(ps.ended) != maxEnded {
		t.Errorf("%d ended programs are kept, want %d", len(ps.ended), maxEnded)
	}
	for range maxStreams {
		if _, err := ps.enter(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = ps.enter()
	wantCode(t, err, connect.CodeResourceExhausted, "256 streams")
}
