package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// A shell that says its machine gets the filter and the agent for it, in the sizes that
// were announced.
func TestSendAgent(t *testing.T) {
	for machine, arch := range machines {
		t.Run(machine, func(t *testing.T) {
			ours, theirs := net.Pipe()
			_, p := pace(t.Context(), stallWait)
			defer p.end()
			sent := make(chan error, 1)
			go func() {
				err := sendAgent(ours, p)
				sent <- errors.Join(err, ours.Close())
			}()
			shell := bufio.NewReader(theirs)
			if line, err := shell.ReadString('\n'); err != nil || line != "\n" {
				t.Fatalf("the first line is %q (%v), want no error, line = \"\\n\"", line, err)
			}
			fmt.Fprintln(theirs, machine)
			line, err := shell.ReadString('\n')
			var s, a int
			if _, serr := fmt.Sscanf(line, "%d %d\n", &s, &a); err != nil || serr != nil {
				t.Fatalf("the second line is %q (%v, %v), want no error", line, err, serr)
			}
			all, err := io.ReadAll(shell)
			if err := errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			filter, err := seccomp.Filter(arch)
			if err != nil {
				t.Fatal(err)
			}
			r, err := agentbin.Open(arch)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			agent, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if s != len(filter) || a != len(agent) || !bytes.Equal(all, append(filter[:len(filter):len(filter)], agent...)) {
				t.Errorf("announced %d and %d bytes and sent %d, want %d and %d", s, a, len(all), len(filter), len(agent))
			}
		})
	}
}

func TestSendAgentToStrangers(t *testing.T) {
	for _, c := range []struct {
		name, says string
		want       error
	}{
		{"no agent for it", "riscv64\n", backend.ErrUnsupported},
		{"says nothing", "", io.ErrUnexpectedEOF},
		{"says too much", string(make([]byte, maxMachine+1)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			_, p := pace(t.Context(), stallWait)
			defer p.end()
			err := sendAgent(struct {
				io.Reader
				io.Writer
			}{bytes.NewReader([]byte(c.says)), &got}, p)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got.String() != "\n" {
				t.Errorf("%d bytes were sent, want got = \"\\n\"", got.Len())
			}
		})
	}
}

// An answer that was not heard is asked for again.
func TestAskMachineAgain(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	heard := make(chan string, 1)
	go func() {
		name, err := askMachine(ours, time.Millisecond)
		heard <- fmt.Sprint(name, err)
		ours.Close()
	}()
	shell := bufio.NewReader(theirs)
	for range 3 {
		if line, err := shell.ReadString('\n'); err != nil || line != "\n" {
			t.Fatalf("asked %q (%v), want no error, line = \"\\n\"", line, err)
		}
	}
	// The answer may meet a question that is on its way.
	go io.Copy(io.Discard, shell)
	fmt.Fprintln(theirs, "x86_64")
	if got := <-heard; got != "x86_64<nil>" {
		t.Errorf("heard %s, want \"x86_64<nil>\"", got)
	}
}

// A shell that answers nothing, or takes nothing more, ends the feeding with what to do.
func TestSendAgentStalls(t *testing.T) {
	for name, talk := range map[string]func(shell net.Conn){
		"answers nothing": func(shell net.Conn) { io.Copy(io.Discard, shell) },
		"takes nothing more": func(shell net.Conn) {
			r := bufio.NewReader(shell)
			r.ReadString('\n')
			fmt.Fprintln(shell, "x86_64")
			r.ReadString('\n')
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			ctx, p := pace(t.Context(), 50*time.Millisecond)
			defer p.end()
			defer context.AfterFunc(ctx, func() { ours.Close() })()
			go talk(theirs)
			if err := sendAgent(ours, p); err == nil {
				t.Error("it ended well: got no error, want an error")
			}
			var stalled *stallError
			if err := context.Cause(ctx); !errors.As(err, &stalled) || !strings.Contains(err.Error(), "try again") {
				t.Errorf("the cause is %v, want an error of type %T containing \"try again\"", err, stalled)
			}
		})
	}
}

// A reader that is slow but moves is waited for, and so is one that has all.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p := pace(t.Context(), time.Second)
		defer p.end()
		for range 5 {
			time.Sleep(time.Second - 1)
			p.moved()
		}
		p.rest()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatalf("context.Cause(ctx) = %v, want no error", context.Cause(ctx))
		}
		p.moved()
		time.Sleep(2 * time.Second)
		var stalled *stallError
		if !errors.As(context.Cause(ctx), &stalled) {
			t.Errorf("the cause is %v, want an error of type %T", context.Cause(ctx), stalled)
		}
	})
}
