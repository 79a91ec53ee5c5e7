package backendtest

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// A witness that nothing can reach would hide what a sandbox reaches.
func TestWitness(t *testing.T) {
	w := newWitness(t)
	for i, network := range []string{"tcp", "udp"} {
		c, err := net.Dial(network, net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if network == "udp" {
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 1)
		_, err = c.Read(b) // an answer, or the end
		if network == "udp" && (err != nil || b[0] != 'x') {
			t.Errorf("udp: %q, %v, want \"x\", no error", b, err)
		}
		if n := w.reached(); n != int64(i+1) {
			t.Errorf("%s: reached %d times, want %d", network, n, i+1)
		}
	}
}
