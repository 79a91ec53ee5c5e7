package podexec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var target = Target{Namespace: "ns", Pod: "pod", Container: "sandbox"}

// ways runs a test over both kinds of streams.
func ways(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Run("WebSocket", func(t *testing.T) { test(t, &fake{}) })
	t.Run("SPDY", func(t *testing.T) { test(t, &fake{noWebSocket: http.StatusForbidden}) })
}

// soon is a context that ends before a hanging test is killed.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, d *Dialer, argv ...string) *Stream {
	t.Helper()
	s, err := d.Connect(soon(t), target, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func cat(p *program) *metav1.Status {
	if _, err := io.Copy(p.stdout, p.stdin); err != nil {
		return failed(err.Error())
	}
	return exited(0)
}

func TestStreamEchoes(t *testing.T) {
	ways(t, func(t *testing.T, f *fake) {
		f.run = cat
		s := connect(t, f.serve(t), "cat", "-")
		got := make([]byte, 4)
		for _, word := range []string{"ping", "pong"} {
			if _, err := io.WriteString(s, word); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(s, got); err != nil || string(got) != word {
				t.Fatalf("%q, %v, want no error, got = %v", got, err, word)
			}
		}
		big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<15) // half a megabyte
		go func() {
			_, _ = s.Write(big)
			_ = s.CloseWrite()
		}()
		if rest, err := io.ReadAll(s); err != nil || !bytes.Equal(rest, big) {
			t.Errorf("%d bytes, %v; want %d", len(rest), err, len(big))
		}
		if _, err := s.Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write after the end: %v, want net.ErrClosed", err)
		}
		want := "/api/v1/namespaces/ns/pods/pod/exec?command=cat&command=-&container=sandbox&stderr=true&stdin=true&stdout=true"
		if !strings.HasSuffix(f.asked[0], want) {
			t.Errorf("asked for %q, want %s", f.asked, want)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	long := strings.Repeat("w", maxWords)
	for _, c := range []struct {
		name   string
		stderr string
		status *metav1.Status
		said   string
		want   error
		code   int
	}{
		{name: "well", status: exited(0)},
		{name: "code", stderr: "oh", status: exited(7), said: "oh", code: 7},
		{name: "many words", stderr: long + "more", status: exited(1), said: long, code: 1},
		{name: "gone", status: failed(`unable to upgrade connection: container not found ("sandbox")`), want: ErrGone},
		{name: "no program", status: failed(`exec failed: unable to start container process: exec: "/no": stat /no: no such file or directory`), want: ErrNoProgram},
		{name: "no status", status: &metav1.Status{}, want: ErrLost},
		{name: "strange code", status: exited(1 << 40), want: ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways(t, func(t *testing.T, f *fake) {
				f.run = func(p *program) *metav1.Status {
					_, _ = io.WriteString(p.stdout, "out")
					if c.stderr != "" {
						_, _ = io.WriteString(p.stderr, c.stderr)
					}
					return c.status
				}
				s := connect(t, f.serve(t), "program")
				out, err := io.ReadAll(s)
				var exit *ExitError
				if errors.As(err, &exit) != (c.code != 0) || exit != nil && exit.Code != c.code {
					t.Errorf("%v; want code %d", err, c.code)
				}
				if c.code == 0 && !errors.Is(err, c.want) {
					t.Errorf("%v; want %v", err, c.want)
				}
				if string(out) != "out" || s.Said() != c.said {
					t.Errorf("%q, said %.20q, want out = \"out\", Said = %v", out, s.Said(), c.said)
				}
				if again, err2 := s.Read(make([]byte, 1)); again != 0 || err != nil && !errors.Is(err2, err) {
					t.Errorf("then %d, %v, want again = 0, no error or %v", again, err2, err)
				}
			})
		})
	}
}

// TestStreamCloses has one read and one write wait for ever.
func TestStreamCloses(t *testing.T) {
	ways(t, func(t *testing.T, f *fake) {
		held := make(chan struct{})
		f.run = func(*program) *metav1.Status { <-held; return exited(0) }
		d := f.serve(t)
		defer close(held)
		s := connect(t, d, "sleep")
		ended := make(chan error, 2)
		go func() { _, err := s.Read(make([]byte, 1)); ended <- err }()
		go func() { _, err := s.Write(make([]byte, 64<<20)); ended <- err }()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("%v, want net.ErrClosed", err)
			}
		}
	})
}

func TestStreamOutlivesItsContext(t *testing.T) {
	ways(t, func(t *testing.T, f *fake) {
		f.run = cat
		ctx, cancel := context.WithCancel(soon(t))
		s, err := f.serve(t).Connect(ctx, target, "cat")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		cancel()
		_, _ = io.WriteString(s, "x")
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	})
}

func TestStreamIsLost(t *testing.T) {
	for _, how := range []string{"cut", "frozen"} {
		t.Run(how, func(t *testing.T) {
			ways(t, func(t *testing.T, f *fake) {
				f.run = cat
				d, cable := lay(t, f.serve(t))
				d.PingPeriod, d.DeadAfter = 50*time.Millisecond, 400*time.Millisecond
				s := connect(t, d, "cat")
				_, _ = io.WriteString(s, "x")
				if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				if how == "cut" {
					cable.cut()
				} else {
					cable.freeze()
				}
				if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrLost) {
					t.Errorf("%v; want %v", err, ErrLost)
				}
			})
		})
	}
}

// TestStreamStaysWhileIdle shows that answers to pings keep a stream, and that no side
// counts as dead while its output is not read.
func TestStreamStaysWhileIdle(t *testing.T) {
	ways(t, func(t *testing.T, f *fake) {
		silence, noise := make(chan struct{}), bytes.Repeat([]byte("n"), 8<<20)
		f.run = func(p *program) *metav1.Status {
			<-silence
			_, _ = p.stdout.Write(noise)
			return exited(0)
		}
		d := f.serve(t)
		d.PingPeriod, d.DeadAfter = 50*time.Millisecond, 400*time.Millisecond
		s := connect(t, d, "slow")
		time.AfterFunc(3*d.DeadAfter, func() { close(silence) })
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * d.DeadAfter)
		if n, err := io.Copy(io.Discard, s); err != nil || n != int64(len(noise))-1 {
			t.Errorf("%d bytes, %v, want no error, n = %d", n, err, int64(len(noise))-1)
		}
	})
}

func TestConnectRefused(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name  string
		fake  *fake
		is    func(error) bool
		asked int
	}{
		{"no pod", &fake{refuse: &apierrors.NewNotFound(pods, "pod").ErrStatus}, func(err error) bool {
			return errors.Is(err, ErrGone) && apierrors.IsNotFound(err)
		}, 1},
		{"forbidden", &fake{refuse: &apierrors.NewForbidden(pods, "pod", errors.New("no")).ErrStatus}, apierrors.IsForbidden, 2},
		{"bad container", &fake{refuse: &apierrors.NewBadRequest("container x is not valid for pod pod").ErrStatus}, apierrors.IsBadRequest, 1},
		{"long words", &fake{refuse: failedWith(strings.Repeat("x", 10*maxStatus))}, func(err error) bool {
			return len(err.Error()) < 3*maxWords
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.fake.serve(t).Connect(soon(t), target, "true")
			if err == nil {
				s.Close()
				t.Fatal("there is a stream: got no error, want an error")
			}
			if !c.is(err) || len(c.fake.asked) != c.asked {
				t.Errorf("%v, asked %q, want c.is(err) = true, len(c.fake.asked) = %v", err, c.fake.asked, c.asked)
			}
		})
	}
}

func failedWith(words string) *metav1.Status {
	s := failed(words)
	s.Code = http.StatusInternalServerError
	return s
}

// TestConnectGivesUp has a server that takes connections and says nothing.
func TestConnectGivesUp(t *testing.T) {
	why := errors.New("enough")
	for name, until := range map[string]func(context.Context) (ctx context.Context, connected func()){
		"by its context": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		},
		"when its time is over": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, 200*time.Millisecond, why)
			t.Cleanup(cancel)
			return late{ctx}, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, connected := until(t.Context())
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				_, _ = c.Read(make([]byte, 1))
				connected()
				_, _ = io.Copy(io.Discard, c)
			}()
			if _, err := dialer(t, "http://"+l.Addr().String()).Attach(ctx, target); !errors.Is(err, why) {
				t.Errorf("%v; want %v", err, why)
			}
		})
	}
}

// A late context's deadline comes before its end, for longer than those that a machine
// makes: a connection notices it first.
type late struct{ context.Context }

func (c late) Deadline() (time.Time, bool) {
	d, ok := c.Context.Deadline()
	return d.Add(-100 * time.Millisecond), ok
}
