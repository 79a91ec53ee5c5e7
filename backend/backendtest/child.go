package backendtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// childVariable holds the job of a process that the suite started, as JSON.
const childVariable = "LLMSANDBOX_BACKENDTEST_CHILD"

// A job is what another process does until it is killed.
type job struct {
	Kind    string // "background", "churn" or "flood"
	ID      string // the sandbox to attach to, of "flood"
	Address string
	Marker  string
}

// Child does the job of a process that the suite has started, and then ends the process. In
// every other process it returns at once. Call it first in TestMain: some cases start
// the test program again, to kill the owner of a sandbox. The function gets
// [Config.Address] and returns the same configuration as the one under test.
func Child(config func(address string) (Config, error)) {
	text := os.Getenv(childVariable)
	if text == "" {
		return
	}
	err := func() error {
		var j job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			return err
		}
		Marker = j.Marker
		c, err := config(j.Address)
		if err != nil {
			return err
		}
		return j.do(context.Background(), &suite{Config: c})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance suite's other process:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// churned begins the ids of sandboxes whose owner is killed while it opens one.
const churned = "churned-"

// ready signals the first process that this one is in the state that the test needs.
func ready(id string) { fmt.Println("owner", id) }

func (j job) do(ctx context.Context, s *suite) error {
	o := s.options(llmsandbox.Options{BestEffort: true})
	switch j.Kind {
	case "background":
		sb, err := llmsandbox.Open(ctx, &o)
		if err != nil {
			return err
		}
		if err := startBackground(ctx, sb); err != nil {
			return err
		}
		ready(sb.ID())
		<-sb.Done()
		return nil
	case "churn":
		ready("-")
		for n := 0; ; n++ {
			o.ID = fmt.Sprintf("%s%d-%d", churned, os.Getpid(), n)
			sb, err := llmsandbox.Open(ctx, &o)
			if err != nil {
				return err
			}
			if err := sb.Close(); err != nil {
				return err
			}
		}
	case "flood":
		sb, err := llmsandbox.Attach(ctx, j.ID, &llmsandbox.AttachOptions{
			Backend: s.Backend, Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited},
		})

		if err != nil {
			return err
		}
		started := make(chan struct{})
		go func() {
			<-started
			ready(j.ID)
		}()
		_, err = sb.Run(ctx, "import os\nwhile True: os.write(1, b'x' * 65536)",
			&llmsandbox.RunOptions{Stdout: &first{started: started}, Timeout: 5 * time.Second})
		return err
	}
	return fmt.Errorf("job %q is not known", j.Kind)
}

// startChild starts another process, and returns it with the id it reports.
func (s *suite) startChild(t *testing.T, kind, id string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(job{Kind: kind, ID: id, Address: s.Address, Marker: Marker})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$") // runs nothing where Child is not called
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // both fail of one that a case has killed
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "owner "); ok {
			return cmd, id
		}
		t.Log(lines.Text())
	}
	t.Fatalf("the other process ended (%v): does TestMain call backendtest.Child, and can its backend be reached from there?", lines.Err())
	return nil, ""
}
