//go:build linux

package guest_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestControl: the two pipes are the program's descriptors 3 and 4 and nothing else of
// the agent is open, its input is empty, and neither limit nor output know of them.
func TestControl(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		req := sh(`ls /proc/self/fd | tr '\n' ' '; cat; while read -r line <&3; do echo "got $line" >&4; done; seq 2000 >&4; exit 7`)
		req.Control, req.OutputLimit = true, 100
		p, err := a.client.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			io.WriteString(p.Requests(), "one\ntwo\n")
			p.Requests().Close()
		}()
		var control strings.Builder
		done := make(chan error, 1)
		go func() { _, err := io.Copy(&control, p.Control()); done <- err }()
		r, err := collect(t.Context(), p)
		if err != nil || r.exit.Code != 7 {
			t.Errorf("%+v, %v, want no error, Code = 7", r, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		// 5 is the directory that ls reads.
		if r.out != "0 1 2 3 4 5 " {
			t.Errorf("descriptors %q, want \"0 1 2 3 4 5 \"", r.out)
		}
		if got := control.String(); !strings.HasPrefix(got, "got one\ngot two\n1\n2\n") || !strings.HasSuffix(got, "\n2000\n") {
			t.Errorf("control: %q, want got beginning with \"got one\\ngot two\\n1\\n2\\n\", got ending in \"\\n2000\\n\"", got)
		}
	})
}

// TestControlResumes: no byte of the control channel is lost or doubled by a new stream.
func TestControlResumes(t *testing.T) {
	a := startAgent(t, modes()[0])
	client := a.dial()
	req := sh("seq 200000 >&4")
	req.Control = true
	p, err := client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for cut := 0; ; cut++ {
		_, err := io.CopyN(&all, p.Control(), int64(100_000+cut*7919))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at := p.ControlOffset()
		if at != uint64(all.Len()) {
			t.Fatalf("offset %d after %d bytes, want at = uint64(all.Len())", at, all.Len())
		}
		id := p.ID()
		client.Close()
		client = a.dial()
		if p, err = client.Attach(t.Context(), agentproto.AttachRequest{ID: id, ControlOffset: at}); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	for i := 1; i <= 200_000; i++ {
		fmt.Fprintln(&want, i)
	}
	if !bytes.Equal(all.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, want %d", all.Len(), want.Len())
	}
}

// TestControlAlone: control pipes take the place of an input.
func TestControlAlone(t *testing.T) {
	a := startAgent(t, modes()[0])
	req := sh("true")
	req.Control, req.Stdin = true, true
	if _, err := a.client.Start(t.Context(), req); err == nil {
		t.Error("control and stdin: got no error, want an error")
	}
}
