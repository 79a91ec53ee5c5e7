//go:build unix

package kerneltest

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Run runs a cell to its end.
func (k *Kernel) Run(code string) Event { k.t.Helper(); return k.RunWhile(code, nil) }

// RunWhile runs a cell, and meanwhile calls during, once the cell has printed its first
// byte on stdout, and every second.
func (k *Kernel) RunWhile(code string, during func()) Event {
	k.t.Helper()
	k.id++
	mark := fmt.Sprintf("%032x", k.id)
	for _, s := range k.out {
		s.expect(mark)
	}
	k.send(map[string]any{"op": "run", "id": k.id, "code": code, "mark": mark, "stdin": true})
	if during != nil {
		select {
		case <-k.out[0].first():
			defer k.repeat(during)()
		case <-k.exited:
		case <-time.After(patience):
			k.t.Fatal("the cell printed nothing")
		}
	}
	for {
		e := k.next()
		switch {
		case e.ID != k.id:
			k.t.Fatalf("an event of another cell: %+v", e)
		case e.Event == "input":
			k.Prompts = append(k.Prompts, e.Prompt)
			if len(k.Input) == 0 {
				k.send(map[string]any{"op": "input", "id": k.id, "eof": true})
				continue
			}
			k.send(map[string]any{"op": "input", "id": k.id, "text": k.Input[0]})
			k.Input = k.Input[1:]
		case e.Event == "done":
			e.Stdout, e.Stderr = k.out[0].cut(k.t), k.out[1].cut(k.t)
			if len(e.Error) > 0 {
				if err := json.Unmarshal(e.Error, &e.Failure); err != nil {
					k.t.Fatalf("error %s: %v", e.Error, err)
				}
			}
			return e
		default:
			k.t.Fatalf("a cell got %+v", e)
		}
	}
}

// repeat calls f now and, until its result is called, again: a signal can come while an
// interpreter changes hands between two handlers.
func (k *Kernel) repeat(f func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		wait := time.Second
		if k.def.Interrupt == language.InterruptBoth {
			wait = language.SignalAfter
		}
		for f(); ; f() {
			select {
			case <-end:
				return
			case <-time.After(wait):
			}
			wait = time.Second
		}
	}()
	return func() { close(end); <-ended }
}

// Interrupt interrupts the cell as the language wants it.
func (k *Kernel) Interrupt() {
	how := k.def.Interrupt
	if how == language.InterruptSignal || how == language.InterruptBoth && k.told == k.id {
		syscall.Kill(-k.cmd.Process.Pid, syscall.SIGINT)
	}
	if how != language.InterruptSignal {
		k.told = k.id
		k.send(map[string]any{"op": "interrupt", "id": k.id})
	}
}

// Ask sends a request that is no cell and returns the reply.
func (k *Kernel) Ask(op, code string, cursor int) Event {
	k.t.Helper()
	k.id++
	k.send(map[string]any{"op": op, "id": k.id, "code": code, "cursor": cursor})
	e := k.next()
	if e.Event != "reply" || e.ID != k.id {
		k.t.Fatalf("%s got %+v", op, e)
	}
	return e
}

// Exit waits for the driver's own end.
func (k *Kernel) Exit() *os.ProcessState {
	k.t.Helper()
	select {
	case <-k.exited:
	case <-time.After(patience):
		k.t.Fatal("the driver did not exit")
	}
	return k.cmd.ProcessState
}

// Gone reports whether the driver ends without another event, as after a crash.
func (k *Kernel) Gone(code string) bool {
	k.t.Helper()
	k.id++
	k.send(map[string]any{"op": "run", "id": k.id, "code": code, "mark": fmt.Sprintf("%032x", k.id)})
	_, err := k.from.ReadBytes('\n')
	k.Exit()
	return err != nil
}
