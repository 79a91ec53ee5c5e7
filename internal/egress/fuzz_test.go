package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

// clientHello is what crypto/tls begins with.
func clientHello(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(a, cfg).Handshake() // it ends when b is closed
	}()
	buf := make([]byte, 1<<16)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	<-done
	return buf[:n]
}

// addExtension puts an extension at the end of a ClientHello of one record.
func addExtension(hello []byte, kind uint16, body []byte) []byte {
	out := bytes.Clone(hello)
	extension := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), uint16(len(body)))
	extension = append(extension, body...)
	// record(5) handshake(4) version+random(34) session
	at := 5 + 4 + 34
	at += 1 + int(out[at])
	at += 2 + int(binary.BigEndian.Uint16(out[at:]))
	at += 1 + int(out[at])
	grow := func(i int) {
		binary.BigEndian.PutUint16(out[i:], binary.BigEndian.Uint16(out[i:])+uint16(len(extension)))
	}
	grow(at)
	grow(3)
	grow(7)
	return append(out, extension...)
}

// split puts a message of one record into records of n bytes.
func split(hello []byte, n int) []byte {
	var out []byte
	for rest := hello[5:]; len(rest) > 0; {
		part := rest[:min(n, len(rest))]
		rest = rest[len(part):]
		out = append(out, recordHandshake, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

func TestHelloInPieces(t *testing.T) {
	whole := clientHello(t, &tls.Config{ServerName: "good.test", NextProtos: []string{"h2", "x"}})
	for _, n := range []int{1, 3, 100, 1 << 14} {
		raw := split(whole, n)
		for i := range raw[1:] {
			if l, h := beginning(t, raw[:i+1]); l != speaksBrokenTLS {
				t.Fatalf("records of %d, %d of %d bytes: got %d %+v, want %d", n, i+1, len(raw), l, h, speaksBrokenTLS)
			}
		}
		l, h := beginning(t, append(raw, "more"...))
		if l != speaksTLS || h.name != "good.test" || strings.Join(h.alpn, " ") != "h2 x" {
			t.Errorf("records of %d: %d %+v, want %d, name = \"good.test\", strings.Join(h.alpn, \" \") = \"h2 x\"", n, l, h, speaksTLS)
		}
	}
	const extensionName, extensionALPN = 0, 16
	name := []byte("\x00\x0c\x00\x00\x09evil.test")
	for what, raw := range map[string][]byte{
		"two names": addExtension(whole, extensionName, name), "twice ALPN": addExtension(whole, extensionALPN, nil), "a long one": {22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff},
		"an empty record": {22, 3, 1, 0, 0}, "another message": {22, 3, 1, 0, 4, 2, 0, 0, 0}, "another version": {22, 99, 1, 0, 4, 1, 0, 0, 0},
		"more than a buffer": append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}, make([]byte, maxHello)...),
	} {
		if l, h := beginning(t, raw); l != speaksBrokenTLS {
			t.Errorf("%s: got %d %+v, want %d", what, l, h, speaksBrokenTLS)
		}
	}
}

// beginning is what a connection begins with that begins with b, all of which is still there.
func beginning(t testing.TB, b []byte) (language, hello) {
	t.Helper()
	r := bufio.NewReaderSize(bytes.NewReader(b), maxHello)
	l, h, err := sniff(r)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, b) {
		t.Fatalf("%d bytes are left, %v, want %d, no error", len(rest), err, len(b))
	}
	return l, h
}

// What goes wrong with the connection is no fault of the ClientHello.
func TestHelloThatIsCutOff(t *testing.T) {
	whole := clientHello(t, &tls.Config{ServerName: "good.test"})
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(whole[:20]), iotest.ErrReader(net.ErrClosed)), maxHello)
	if l, _, err := sniff(r); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %d, %v, want net.ErrClosed", l, err)
	}
}

func FuzzHello(f *testing.F) {
	raw := clientHello(f, &tls.Config{ServerName: "good.test", NextProtos: []string{"h2"}})
	f.Add(raw)
	f.Add(split(raw, 7))
	f.Add(addExtension(raw, extensionECH, []byte{0}))
	f.Add(addExtension(raw, extensionECH, nil))
	f.Add([]byte{22, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, h := beginning(t, b)
		if len(h.name) > len(b) {
			t.Fatalf("h = %v, want len(h.name) <= %v", h, len(b))
		}
		// What is complete stays what it is, whatever follows.
		if l == speaksTLS {
			if again, more := beginning(t, append(bytes.Clone(b), b...)); again != l || more.name != h.name {
				t.Fatalf("%d %v, then %d %v, want the same", l, h, again, more)
			}
		}
	})
}

func FuzzSocks(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x09good.test\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04abcdefghijklmnop\x00\x50"))
	f.Add([]byte("\x05\x02\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if readGreeting(r) != nil {
			return
		}
		q, err := readSocksRequest(r)
		if err == nil && len(q.host) > 255 {
			t.Fatalf("%d bytes of host, want an error or len(q.host) <= 255", len(q.host))
		}
	})
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"example.org:443", "*.a.b", "*", "*:80", "10.0.0.0/8:22", "[::1]:80", "[2001:db8::/32]:1", "2606::/16", "0x7f.1", "bücher.example", "１２７.1"} {
		f.Add(s, "127.0.0.1")
	}
	f.Fuzz(func(t *testing.T, text, host string) {
		r, err := parseRule(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		p := &Policy{mode: modeAllow, rules: []rule{r}}
		h, err := normalise(host)
		if err != nil {
			return
		}
		if again, err := normalise(h.String()); err != nil || again != h {
			t.Fatalf("%q is %v, which is %v, %v", host, h, again, err)
		}
		// No rule but one for the address itself lets a name lead to the metadata service.
		metadata := netip.MustParseAddr("169.254.169.254")
		if h.name != "" && r.prefix != netip.PrefixFrom(metadata, 32) && p.dialable(h, metadata, 80, notOwn) == nil {
			t.Fatalf("rule %q lets %q lead to the metadata service, want it refused", text, host)
		}
	})
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Add([]byte("\r\n\r\nGET\t/\tHTTP/1.0\n"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Add([]byte("SSH-2.0-OpenSSH_9.6 Debian\r\n"))
	f.Add([]byte("\x05\x01\x00"))
	f.Add([]byte("\x16\x03\x01\x00\x05\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// How it comes in pieces changes nothing but what is left unfinished.
		l, _, err := sniff(bufio.NewReaderSize(bytes.NewReader(b), maxHello))
		if err != nil {
			t.Fatal(err)
		}
		if l == speaksTLS || l == speaksBrokenTLS {
			return
		}
		for i := range min(len(b), 64) {
			early, more := identify(b[:i])
			if !more && early != l {
				t.Fatalf("%q: %d at byte %d, %d in all", b, early, i, l)
			}
		}
	})
}

func FuzzReplacer(f *testing.F) {
	f.Add([]byte("a secret and secsecret"), []byte("secret"), 3)
	f.Fuzz(func(t *testing.T, text, from []byte, size int) {
		if len(from) == 0 || size < 1 || size > 100 {
			return
		}
		to := bytes.Repeat([]byte{'*'}, len(from))
		got, err := io.ReadAll(newReplacer(&pieces{text, size}, []pair{{from, to}}, 1))
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.ReplaceAll(text, from, to); !bytes.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// pieces reads in pieces of a size.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}
