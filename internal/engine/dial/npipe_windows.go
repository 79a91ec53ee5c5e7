package dial

import (
	"context"
	"net"

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
