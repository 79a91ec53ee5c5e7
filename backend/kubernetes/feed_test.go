package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

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
			sent := make(chan error, 1)
			go func() {
				err := sendAgent(ours)
				sent <- errors.Join(err, ours.Close())
			}()
			shell := bufio.NewReader(theirs)
			if line, err := shell.ReadString('\n'); err != nil || line != "\n" {
				t.Fatalf("the first line is %q (%v)", line, err)
			}
			fmt.Fprintln(theirs, machine)
			line, err := shell.ReadString('\n')
			var s, a int
			if _, serr := fmt.Sscanf(line, "%d %d\n", &s, &a); err != nil || serr != nil {
				t.Fatalf("the second line is %q (%v, %v)", line, err, serr)
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
			err := sendAgent(struct {
				io.Reader
				io.Writer
			}{bytes.NewReader([]byte(c.says)), &got})
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got.String() != "\n" {
				t.Errorf("%d bytes were sent", got.Len())
			}
		})
	}
}
