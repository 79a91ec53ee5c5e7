package engine

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// TestAwait has an engine that could not wait at first, as Podman reports it: in an answer
// that has begun as a good one.
func TestAwait(t *testing.T) {
	const (
		ended   = `{"StatusCode":0}`
		failed  = `{"StatusCode":-1,"Error":{"Message":"unexpected end of JSON input"}}`
		silent  = `{"StatusCode":-1}`
		waiting = "" // no answer
	)
	for _, c := range []struct {
		name   string
		waits  []string
		states []string // what the engine says when it is asked in between
		conds  string   // what was waited for
		done   bool
	}{
		{"ended", []string{ended}, nil, "next-exit", true},
		{"could not wait", []string{failed, waiting}, []string{"running"}, "next-exit not-running", false},
		{"could not wait and does not say so", []string{silent, waiting}, []string{"running"}, "next-exit not-running", false},
		{"could not wait, then ended", []string{failed, ended}, []string{"running"}, "next-exit not-running", true},
		{"could not wait until it ended", []string{failed}, []string{"exited"}, "next-exit", true},
		{"could not wait until it was gone", []string{silent}, []string{""}, "next-exit", true},
		{"could not wait before it started", []string{failed, waiting}, []string{"created"}, "next-exit next-exit", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var conds []string
			settled := make(chan struct{})
			engine := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				if !strings.HasSuffix(r.URL.Path, "/wait") {
					state := c.states[0]
					c.states = c.states[1:]
					if state == "" {
						w.WriteHeader(http.StatusNotFound)
						_, _ = io.WriteString(w, `{"message":"no such container"}`)
						return
					}
					fmt.Fprintf(w, `{"State":{"Status":%q,"Running":%t}}`, state, state == "running")
					return
				}
				conds = append(conds, r.URL.Query().Get("condition"))
				answer := c.waits[0]
				c.waits = c.waits[1:]
				if answer == waiting {
					close(settled)
					<-r.Context().Done()
				}
				_, _ = io.WriteString(w, answer)
			})
			b, err := New(engine, Flavor{Name: "podman"}, &Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := agenthost.New(agenthost.Attached, &host{backend: b, container: "c", until: waitNextExit}, agenthost.Description{})
			defer s.Close(nil)
			s.Follow()
			select {
			case <-s.Done():
				if !c.done {
					t.Error("an end that was not observed")
				}
			case <-settled:
				select {
				case <-s.Done():
					t.Error("an end that was not observed")
				default:
				}
				if c.done {
					t.Error("the end is not noticed")
				}
				s.Close(nil)
			case <-time.After(10 * time.Second):
				t.Error("no end, and no wait")
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(conds, " "); got != c.conds {
				t.Errorf("waited for %q, want %q", got, c.conds)
			}
		})
	}
}
