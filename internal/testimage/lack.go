package testimage

import (
	"errors"
	"os"
	"testing"
)

// A Lack is an error that is the machine's: what it lacks for a test, and how to get it.
type Lack string

func (l Lack) Error() string { return string(l) }

// Must ends the test on an error: on a [Lack] as Unavailable does.
func Must(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if lack := Lack(""); errors.As(err, &lack) {
		Unavailable(t, err.Error())
	}
	t.Fatal(err)
}

// Unavailable skips the test with the reason, or fails it where a test that can
// run must run.
func Unavailable(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
