package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// openVariable has the test program open a database instead, when its standard input ends.
const openVariable = "LLMSANDBOX_TEST_STORE_OPEN"

func TestMain(m *testing.M) {
	if source := os.Getenv(openVariable); source != "" {
		if err := openWhenTold(source); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(withServer{m})
}

func openWhenTold(source string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	s, err := Open(context.Background(), source)
	if err != nil {
		return err
	}
	return errors.Join(s.Ping(context.Background()), s.Close())
}

// withServer stops the server of the tests after them.
type withServer struct{ m *testing.M }

func (w withServer) Run() int {
	code := w.m.Run()
	if !serverAsked {
		return code
	}
	s, err := server()
	if err == nil {
		err = s.Stop()
	}
	if err != nil && !errors.Is(err, testpostgres.ErrMissing) {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		return 1
	}
	return code
}

var (
	server      = sync.OnceValues(testpostgres.Start)
	serverAsked bool // tests are not parallel
)

// newPostgres returns the URL of an empty database.
func newPostgres(t *testing.T) string {
	serverAsked = true
	s, err := server()
	switch {
	case errors.Is(err, testpostgres.ErrMissing) && os.Getenv("LLMSANDBOX_REQUIRE") != "1":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return s.Database(t)
}

// newFile returns the path of a file that is not there yet, with what a URL would have to escape.
func newFile(t *testing.T) string { return filepath.Join(t.TempDir(), "a ?#%41&b.db") }

// onBoth runs a test on each kind of database; make returns an empty one.
func onBoth(t *testing.T, test func(t *testing.T, source string)) {
	for name, source := range map[string]func(*testing.T) string{"sqlite": newFile, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) { test(t, source(t)) })
	}
}

// open opens a database for as long as the test runs.
func open(t *testing.T, source string) *Store {
	t.Helper()
	s, err := Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
