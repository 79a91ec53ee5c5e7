package service

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// TestOnce: a request with a key is done once, whoever sends it again, and one that failed can be sent again.
func TestOnce(t *testing.T) {
	s := &Service{records: &memory{}, cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	done := 0
	failing := errors.New("failing")
	once := func(project, sandbox, operation, key, request string, fails bool) (int, bool, error) {
		return Once(t.Context(), s, project, sandbox, operation, key, request, func(context.Context) (int, error) {
			done++
			if fails {
				return 0, failing
			}
			return done, nil
		})
	}
	for _, step := range []struct {
		project, sandbox, operation, key, request string
		fails                                     bool
		want                                      int
		repeated                                  bool
		err                                       error
	}{
		{"p", "", "make", "k", "a", false, 1, false, nil},
		{"p", "", "make", "k", "a", false, 1, true, nil},
		{"p", "", "make", "k", "b", false, 0, true, ErrRepeated},
		{"p", "", "make", "", "a", false, 2, false, nil},
		{"p", "", "make", "", "a", false, 3, false, nil},
		{"q", "", "make", "k", "b", false, 4, false, nil},
		{"p", "s", "make", "k", "b", false, 5, false, nil},
		{"p", "", "start", "k", "b", false, 6, false, nil},
		{"p", "", "make", "l", "a", true, 0, false, failing},
		{"p", "", "make", "l", "b", false, 8, false, nil},
		{"p", "", "make", "l", "b", false, 8, true, nil},
	} {
		got, repeated, err := once(step.project, step.sandbox, step.operation, step.key, step.request, step.fails)
		if got != step.want || repeated != step.repeated || !errors.Is(err, step.err) {
			t.Errorf("%+v: got %d, %t, %v", step, got, repeated, err)
		}
	}
	_, _, err := Once(t.Context(), s, "p", "", "make", "outer", "a", func(ctx context.Context) (int, error) {
		_, _, err := Once(ctx, s, "p", "", "make", "outer", "a", func(context.Context) (int, error) {
			t.Error("it was done while it was under way")
			return 0, nil
		})
		if !errors.Is(err, ErrRepeated) {
			t.Errorf("while it was under way: %v, want ErrRepeated", err)
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
}
