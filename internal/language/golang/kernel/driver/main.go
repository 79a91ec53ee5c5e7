// The driver of Go kernels: requests on descriptor 3, replies on 4. Each cell becomes a
// program of its own, which begins with the variables that the last one left.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

type request struct {
	Op     string
	ID     int
	Code   string
	Mark   string
	Cursor int
}

type failure struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

type done struct {
	Event    string            `json:"event"`
	ID       int               `json:"id"`
	Status   string            `json:"status"`
	Count    int               `json:"count"`
	Value    map[string]string `json:"value,omitempty"`
	Error    *failure          `json:"error,omitempty"`
	ExitCode *int              `json:"exit_code,omitempty"`
}

// report is what a cell's program reports, as in package state.
type report struct {
	Values    []string
	Panic     string
	Kind      string
	Trace     string
	Lost      []string
	Variables []variable
}

type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

type kernel struct {
	goTool, dir string
	replies     *os.File
	signals     chan os.Signal
	count       int
	session     session
	variables   []variable
	state       int // the number of the file with the state
	exports     map[string]string
}

func main() {
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	k := &kernel{goTool: os.Args[1], dir: os.Args[2], replies: os.NewFile(4, "replies"), signals: make(chan os.Signal, 1), exports: map[string]string{}}
	// An interrupt ends the cell's program, not the driver.
	signal.Notify(k.signals, os.Interrupt)
	if err := os.MkdirAll(filepath.Join(k.dir, "session"), 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(1)
	}
	k.session = newSession()
	k.send(map[string]any{"event": "ready", "language": "go", "version": strings.TrimPrefix(runtime.Version(), "go"), "flavor": "compiled"})
	in := bufio.NewReaderSize(os.NewFile(3, "requests"), 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var r request
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "kernel:", err)
			os.Exit(1)
		}
		k.serve(r)
	}
}

func (k *kernel) send(event any) {
	line, err := json.Marshal(event)
	if err == nil {
		_, err = k.replies.Write(append(line, '\n'))
	}
	if err != nil {
		os.Exit(1) // the host has closed the pipe
	}
}

func (k *kernel) serve(r request) {
	reply := map[string]any{"event": "reply", "id": r.ID}
	switch r.Op {
	case "run":
		k.run(r)
		return
	case "input":
		return // no cell asks
	case "complete":
		matches, start := k.complete(r.Code, r.Cursor)
		reply["matches"], reply["start"], reply["end"] = matches, start, r.Cursor
	case "inspect":
		reply["text"] = k.inspect(r.Code, r.Cursor)
	case "variables":
		reply["variables"] = append([]variable{}, k.variables...)
	case "reset":
		k.session, k.variables, k.count = newSession(), nil, 0
		os.Remove(k.stateFile()) // a session without variables reads none
	default:
		reply["error"] = "unknown request " + r.Op
	}
	k.send(reply)
}

func (k *kernel) stateFile() string { return filepath.Join(k.dir, fmt.Sprintf("state-%d", k.state)) }

func (k *kernel) run(r request) {
	k.count++
	d := done{Event: "done", ID: r.ID, Count: k.count}
	k.cell(r.Code, fmt.Sprintf("cell[%d]", k.count), &d)
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		f.WriteString("\x00" + r.Mark)
	}
	k.send(d)
	if d.Status == "exit" {
		os.Exit(*d.ExitCode)
	}
}

// cell runs a cell. What it declares holds once its program has ended in good order.
func (k *kernel) cell(code, name string, d *done) {
	select {
	case <-k.signals: // came between cells
	default:
	}
	fail := func(kind, message, trace string) {
		d.Status, d.Error = "error", &failure{kind, message, trace}
	}
	next, err := k.session.with(code, name)
	if err != nil {
		fail("SyntaxError", err.Error(), err.Error())
		return
	}
	source := next.source(k)
	if err := os.WriteFile(filepath.Join(k.dir, "session/main.go"), []byte(source), 0o644); err != nil {
		fail("KernelError", err.Error(), "")
		return
	}
	program := filepath.Join(k.dir, "session/cell")
	build := exec.Command(k.goTool, "build", "-buildvcs=false", "-ldflags=-s", "-o", program, "./session")
	build.Dir = k.dir
	if out, err := build.CombinedOutput(); k.interrupted(err) {
		d.Status, d.Error = "interrupted", &failure{"Interrupted", "the cell was interrupted while it was compiled", ""}
		return
	} else if err != nil {
		text := tidy(string(out))
		first, _, _ := strings.Cut(text, "\n")
		fail("CompileError", first, text)
		return
	}
	rep, err := k.execute(program)
	var exit *exec.ExitError
	switch {
	case k.interrupted(err):
		d.Status, d.Error = "interrupted", &failure{"Interrupted", "the cell was interrupted; variables are as they were before it", ""}
	case errors.As(err, &exit) && exit.Exited() && exit.ExitCode() != 2:
		code := exit.ExitCode()
		d.Status, d.ExitCode = "exit", &code
	case err != nil:
		fail("Crash", "the cell's program ended with "+err.Error()+"; variables are as they were before it", "")
	case rep == nil:
		code := 0
		d.Status, d.ExitCode = "exit", &code
	default:
		k.keep(next, rep)
		d.Status = "ok"
		if rep.Kind != "" {
			fail(rep.Kind, rep.Panic, "panic: "+rep.Panic+"\n"+rep.Trace)
		} else if len(rep.Values) > 0 {
			d.Value = map[string]string{"text/plain": strings.Join(rep.Values, ", ")}
		}
	}
}

// interrupted reports whether a process failed after a signal that the driver got, too.
func (k *kernel) interrupted(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
		return true
	}
	select {
	case <-k.signals:
		return true
	default:
		return false
	}
}

// execute runs a cell's program; without a report, it ended by itself.
func (k *kernel) execute(program string) (*report, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	after := filepath.Join(k.dir, fmt.Sprintf("state-%d", k.state+1))
	cmd := exec.Command(program, k.stateFile(), after)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{to}
	if err := cmd.Start(); err != nil {
		to.Close()
		return nil, err
	}
	to.Close()
	data, readErr := io.ReadAll(from)
	if err := cmd.Wait(); err != nil || len(data) == 0 {
		return nil, err
	}
	var rep report
	if readErr == nil {
		readErr = json.Unmarshal(data, &rep)
	}
	return &rep, readErr
}

// keep makes a cell's declarations and variables those of the kernel.
func (k *kernel) keep(next session, rep *report) {
	os.Remove(k.stateFile()) // the one before is of no more use
	k.state++
	k.session, k.variables = next, rep.Variables
	for _, lost := range rep.Lost {
		fmt.Fprintf(os.Stderr, "kernel: the next cell begins without the value of %s\n", lost)
	}
}
