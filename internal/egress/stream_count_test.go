package egress

import (
	"net"
	"testing"
)

// What a client sends at once after its request is that of the tunnel, even if it was
// there before the tunnel began.
func TestWhatIsReadAheadIsNotCounted(t *testing.T) {
	client, inside := net.Pipe()
	defer client.Close()
	s := newStream(inside, func() {})
	defer func() { s.Close(); <-s.pumped }()
	send := func(text string) {
		t.Helper()
		if _, err := client.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send("request")
	buf := make([]byte, 16)
	if n, err := s.Read(buf); err != nil || string(buf[:n]) != "request" {
		t.Fatalf("%q, %v, want no error, buf[:n] = \"request\"", buf[:n], err)
	}
	send("ahead") // the stream has taken it, no reader has read it
	if n := s.sent.Load(); n != 7 {
		t.Errorf("%d bytes, want those of the request", n)
	}
	if n, err := s.Read(buf); err != nil || string(buf[:n]) != "ahead" {
		t.Fatalf("%q, %v, want no error, buf[:n] = \"ahead\"", buf[:n], err)
	}
	if n := s.sent.Load(); n != 12 {
		t.Errorf("%d bytes, want all that were read", n)
	}
}
