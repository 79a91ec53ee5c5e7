package agentclient

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestBounded has an agent that sends more than it was asked for.
func TestBounded(t *testing.T) {
	b := bounded{room: 10}
	n, err := io.CopyBuffer(&b, onlyReader{strings.NewReader(strings.Repeat("x", 100))}, make([]byte, 4))
	var refused *agentproto.Error
	if !errors.As(err, &refused) || refused.Code != agentproto.CodeTooLarge || n != 8 || b.content.Len() != 8 {
		t.Errorf("%d, %v, want an error of type %T, Code = CodeTooLarge, n = 8, Len = 8", n, err, refused)
	}
	b = bounded{room: 10}
	if _, err := io.CopyBuffer(&b, onlyReader{strings.NewReader("0123456789")}, make([]byte, 4)); err != nil || b.content.String() != "0123456789" {
		t.Errorf("%q, %v, want no error, content = \"0123456789\"", b.content.String(), err)
	}
}
