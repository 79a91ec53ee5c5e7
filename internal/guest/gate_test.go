//go:build linux

package guest

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestGate: a write wakes a reader that waits, and a gate that is not armed reports nothing.
func TestGate(t *testing.T) {
	r, theirs, err := newPipe(false)
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(theirs), "theirs")
	defer w.Close()
	all := func(n int) int { return n }
	o, err := newOutput(r, false, 1<<10, all)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	ready := func() int {
		var event [1]unix.EpollEvent
		n, err := unix.EpollWait(int(o.gate.epoll), event[:], 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(text string) {
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 8)
	room := func() []byte { return buf }
	waits := make(chan struct{}, 1)
	read := func(want string) {
		t.Helper()
		n, err := o.read(room, func() {
			select {
			case waits <- struct{}{}:
			default:
			}
		})
		if err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], err, want)
		}
	}
	write("1")
	if n := ready(); n != 0 {
		t.Errorf("a write before anyone waited: %d events, want 0", n)
	}
	read("1")
	go func() {
		<-waits
		write("2")
	}()
	read("2")
	write("3")
	if n := ready(); n != 0 {
		t.Errorf("a write after the wait: %d events, want 0", n)
	}
	read("3")
	if err := o.setDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.read(room, func() {}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v, want ErrDeadlineExceeded", err)
	}
	if err := o.setDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := o.read(room, func() {}); err != io.EOF {
		t.Errorf("closed: %v, want EOF", err)
	}
}

// TestFlood: only many small reads in a row are paced.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			n      int
			waited bool
			every  time.Duration // between two reads
			paced  bool
		}{
			{"a program that writes line after line", 8, true, 10 * time.Microsecond, true},
			{"with something to read each time", 8, false, 10 * time.Millisecond, true},
			{"lines with pauses", 8, true, time.Millisecond, false},
			{"much at a time", 64 << 10, false, 10 * time.Microsecond, false},
		} {
			var f flood
			start, slept := time.Now(), time.Duration(0)
			for range 100 {
				time.Sleep(c.every)
				before := time.Now()
				f.pace(c.n, c.waited)
				slept += time.Since(before)
			}
			if paced := slept > 0; paced != c.paced {
				t.Errorf("%s: paused for %v of %v, want paused %v", c.name, slept, time.Since(start), c.paced)
			}
			if most := 100 * floodPause; slept > most {
				t.Errorf("%s: paused for %v, want at most %v", c.name, slept, most)
			}
		}
	})
}
