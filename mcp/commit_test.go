package mcp

import (
	"context"
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func TestCommitIsTold(t *testing.T) {
	var fail error
	client := connect(t, newServer(t, Config{Commit: func(ctx context.Context, sb *llmsandbox.Sandbox, language string) (string, error) {
		if _, err := sb.Stat(ctx, "made"); err != nil {
			t.Errorf("the sandbox is not that of the call: %v", err)
		}
		return "saved:" + language, fail
	}}), nil)
	if _, got := execute(t, client, args{"code": "open('made', 'w')"}); got.Image != "saved:python" || len(got.Notes) != 0 {
		t.Errorf("%+v", got)
	}
	fail = errors.New("disk full")
	_, got := execute(t, client, args{"code": "open('made', 'w')"})
	if got.Status != "ok" || len(got.Notes) != 1 || got.Image != "" {
		t.Errorf("%+v", got)
	}
}
