package backendtest

import (
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A witness serves TCP and UDP on one port of every address of this machine, and counts
// what reaches it.
type witness struct {
	addresses []string // of this machine, but for loopbacks
	port      int
	count     atomic.Int64
}

// newWitness starts it; it ends with the test.
func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			w.addresses = append(w.addresses, n.IP.String())
		}
	}
	tcp, udp, err := listenBoth()
	if err != nil {
		t.Fatal(err)
	}
	w.port = tcp.Addr().(*net.TCPAddr).Port
	var serving sync.WaitGroup
	t.Cleanup(func() {
		if err := errors.Join(tcp.Close(), udp.Close()); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			w.count.Add(1)
			_ = conn.Close()
		}
	})
	serving.Go(func() {
		b := make([]byte, 1)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			w.count.Add(1)
			_, _ = udp.WriteTo(b, from) // whether the answer arrives is the other side's to see
		}
	})
	return w
}

// listenBoth listens on one port for both protocols.
func listenBoth() (net.Listener, net.PacketConn, error) {
	var failed error
	for range 10 { // the port that one has got may be another's for the other
		tcp, err := net.Listen("tcp", ":0")
		if err != nil {
			return nil, nil, err
		}
		udp, err := net.ListenUDP("udp", &net.UDPAddr{Port: tcp.Addr().(*net.TCPAddr).Port})
		if err == nil {
			return tcp, udp, nil
		}
		failed = errors.Join(failed, err, tcp.Close())
	}
	return nil, nil, failed
}

func (w *witness) reached() int64 { return w.count.Load() }

// python writes a truth value or a list of texts as Python does.
func python(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case []string:
		if b, err := json.Marshal(v); err == nil && v != nil {
			return string(b)
		}
	}
	return "[]"
}
