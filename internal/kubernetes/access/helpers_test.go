package access

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"
)

type clientcmdExec = api.ExecConfig

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// authority is the certificate of a server, which is its own authority.
func authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// listen serves each connection with handle, and closes what is left of them at the end.
func listen(t *testing.T, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var all []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			handle(c)
			all = append(all, c)
		}
		for _, c := range all {
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}
