package podexec

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRun(t *testing.T) {
	broken := errors.New("the source broke")
	says := func(out string, code int) func(*program) *metav1.Status {
		return func(p *program) *metav1.Status {
			_, _ = io.WriteString(p.stdout, out)
			return exited(code)
		}
	}
	none := func() io.Reader { return nil }
	words := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	breaks := func() io.Reader { return io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)) }
	for _, c := range []struct {
		name string
		in   func() io.Reader
		run  func(*program) *metav1.Status
		out  string
		want error
	}{
		{"no stdin", none, cat, "", nil},
		{"stdin", words("words"), cat, "words", nil},
		{"as much as may be", none, says("0123456789", 0), "0123456789", nil},
		{"too much", none, says("0123456789a", 0), "", ErrTooMuch},
		{"unread stdin", words(strings.Repeat("x", 1<<20)), says("enough", 0), "enough", nil},
		{"broken stdin", breaks, cat, "", broken},
		{"code", none, says("some", 3), "", &ExitError{Code: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways(t, func(t *testing.T, f *fake) {
				f.run = c.run
				out, err := f.serve(t).Run(soon(t), target, c.in(), 10, "program")
				var exit, wantExit *ExitError
				if errors.As(c.want, &wantExit) {
					if !errors.As(err, &exit) || exit.Code != wantExit.Code {
						t.Errorf("%v; want %v", err, c.want)
					}
				} else if string(out) != c.out || !errors.Is(err, c.want) {
					t.Errorf("%q, %v; want %q, %v", out, err, c.out, c.want)
				}
			})
		})
	}
}

func TestRunIsCancelled(t *testing.T) {
	ways(t, func(t *testing.T, f *fake) {
		held := make(chan struct{})
		f.run = func(*program) *metav1.Status { <-held; return exited(0) }
		d := f.serve(t)
		defer close(held)
		s := connect(t, d, "sleep")
		ctx, cancel := context.WithCancel(soon(t))
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := s.run(ctx, nil, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
	})
}
