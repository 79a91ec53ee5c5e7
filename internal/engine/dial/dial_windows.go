package dial

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/Microsoft/go-winio"
)

func (e Endpoint) npipe(name string) (opener, string, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := winio.DialPipeContext(ctx, name)
		if err != nil {
			return nil, e.explain(ctx, err)
		}
		return conn, nil
	}, e.Host, nil
}

// ownership describes a socket's owner.
func ownership(info os.FileInfo) string {
	return fmt.Sprintf("its mode is %v", info.Mode())
}
