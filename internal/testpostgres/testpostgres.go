// Package testpostgres starts a PostgreSQL server for tests: one of the machine's programs, with an empty
// cluster in a directory of its own, which nothing but its socket leads to.
package testpostgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ErrMissing: PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is not installed (make test-deps)")

// A Server is a PostgreSQL server.
type Server struct {
	dir       string
	program   []string
	as        *syscall.SysProcAttr
	cmd       *exec.Cmd       // while it runs
	log       <-chan []string // its last lines, when it has ended
	databases atomic.Int64
}

const user = "test"

// Start starts a server, and returns when it takes connections. It fails with ErrMissing where there is
// none to start.
func Start() (s *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg-") // a socket's path is short
	if err != nil {
		return nil, err
	}
	s = &Server{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	attributes, err := asUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initialize := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", data, "--username", user, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	initialize.Dir, initialize.SysProcAttr = dir, attributes
	if out, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	s.program = []string{filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "lc_messages=C", "-c", "logging_collector=off"}
	s.as = attributes
	return s, s.Resume()
}

// ForTest starts a server that ends with the test, which fails where there is none to start.
func ForTest(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// programs is the directory of the programs of a server, which Debian does not put on the PATH.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil // the newest
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return filepath.Dir(path), nil
}

// Resume starts the server after a Pause, with its databases, and returns when it takes connections.
func (s *Server) Resume() error {
	s.cmd = exec.Command(s.program[0], s.program[1:]...)
	s.cmd.Dir, s.cmd.SysProcAttr = s.dir, s.as
	log, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	ready, ended := make(chan struct{}), make(chan []string, 1)
	s.log = ended
	go func() {
		var last []string
		isReady := false
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if last = append(last, lines.Text()); len(last) > 20 {
				last = last[1:]
			}
			if !isReady && strings.Contains(lines.Text(), "database system is ready to accept connections") {
				isReady = true
				close(ready)
			}
		}
		ended <- last
	}()
	select {
	case <-ready:
		return nil
	case last := <-ended:
		return fmt.Errorf("postgres does not start: %w: %s", s.cmd.Wait(), strings.Join(last, "\n"))
	}
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error { return errors.Join(s.Pause(), os.RemoveAll(s.dir)) }

// Pause ends the server, and keeps its databases.
func (s *Server) Pause() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil { // it waits for no client
		return err
	}
	last := <-s.log
	err := s.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("postgres: %w: %s", err, strings.Join(last, "\n"))
	}
	return err
}

// Database makes an empty database, and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
	return s.url(name)
}

// Dial connects to the server as its clients do.
func (s *Server) Dial() (net.Conn, error) {
	return net.Dial("unix", filepath.Join(s.dir, ".s.PGSQL.5432"))
}

// Serve leads what comes in by a listener to the server, until the test ends.
func (s *Server) Serve(t testing.TB, l net.Listener) {
	var working sync.WaitGroup
	working.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			to, err := s.Dial()
			if err != nil {
				from.Close()
				t.Error(err)
				continue
			}
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				working.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // either end closes it
					way[0].Close()
				})
			}
		}
	})
	t.Cleanup(working.Wait)
	t.Cleanup(func() { l.Close() })
}

func (s *Server) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}
