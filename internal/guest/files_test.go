//go:build linux

package guest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestInlineFiles: a start brings its files, as the code's own, and they go with it.
func TestInlineFiles(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		dir := fmt.Sprintf("/tmp/inline-%d", time.Now().UnixNano())
		req := sh("cat a; ./b; id -u; stat -c %u a; cd /; rm -f " + dir + "/a")
		req.Dir = dir
		req.Files = []agentproto.InlineFile{
			{Path: dir + "/a", Mode: 0o600, Data: []byte("content\n")},
			{Path: dir + "/b", Mode: 0o700, Data: []byte("#!/bin/sh\necho script\n")},
		}
		req.RemoveAfter = []string{dir}
		uid := a.client.Info().CodeUID
		if r := a.run(req); r.out != fmt.Sprintf("content\nscript\n%d\n%d\n", uid, uid) || r.exit.Code != 0 {
			t.Errorf("%+v, want r.out = %q, Code = 0", r, fmt.Sprintf("content\nscript\n%d\n%d\n", uid, uid))
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("not removed: %v, want fs.ErrNotExist", err)
		}
		// They also go when the program cannot be started.
		req.Argv = []string{"/no/such"}
		if _, err := runOn(t.Context(), a.client, req); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("started: %v, want fs.ErrNotExist", err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("not removed after a failed start: %v, want fs.ErrNotExist", err)
		}
	})
}

// TestWrittenProgramsRun: a program that was just written can be executed while
// others are forked, which copies descriptors open for writing.
func TestWrittenProgramsRun(t *testing.T) {
	a := startAgent(t, modes()[0])
	done := make(chan error, 16)
	for i := range cap(done) {
		go func() {
			for j := range 20 {
				dir := fmt.Sprintf("/tmp/written-%d-%d-%d", os.Getpid(), i, j)
				_, err := runOn(t.Context(), a.client, agentproto.StartRequest{
					Argv:        []string{dir + "/x"},
					Files:       []agentproto.InlineFile{{Path: dir + "/x", Mode: 0o700, Data: []byte("#!/bin/true\n")}},
					RemoveAfter: []string{dir},
				})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
