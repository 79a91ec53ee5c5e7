package agentproto

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// socketPair connects a client to a server over a Unix socket.
func socketPair(tb testing.TB, h func(*Call)) *Conn {
	tb.Helper()
	l, err := net.Listen("unix", filepath.Join(tb.TempDir(), "s"))
	if err != nil {
		tb.Skipf("no Unix sockets here: %v", err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		s, err := l.Accept()
		if err == nil {
			err = Server(s, Hello{}, 0, handlerFunc(h))
		}
		served <- err
	}()
	s, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := Client(context.Background(), s, Hello{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		conn.Close()
		<-served
	})
	return conn
}

func BenchmarkRoundTrip(b *testing.B) {
	conn := socketPair(b, func(c *Call) { c.End(&FileInfo{Name: "x"}) })
	b.ReportAllocs()
	for b.Loop() {
		call, err := conn.Open(MethodStat, &PathRequest{Path: "/sandbox/x"})
		if err != nil {
			b.Fatal(err)
		}
		var info FileInfo
		if _, err := call.Recv(context.Background(), &info); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkThroughput(b *testing.B, piece int) {
	const total = 64 << 20
	data := bytes.Repeat([]byte("x"), piece)
	conn := socketPair(b, func(c *Call) {
		for sent := 0; sent < total; sent += piece {
			if _, err := c.Write(ChanOut, data); err != nil {
				return
			}
		}
		c.CloseWrite(ChanOut)
		c.End(&Empty{})
	})
	b.SetBytes(total)
	b.ReportAllocs()
	buf := make([]byte, 64<<10)
	for b.Loop() {
		call, err := conn.Open(MethodRead, &ReadRequest{})
		if err != nil {
			b.Fatal(err)
		}
		got := 0
		for {
			n, err := call.Read(ChanOut, buf)
			got += n
			if err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if got != total {
			b.Fatalf("%d bytes of %d", got, total)
		}
	}
}

func BenchmarkThroughput64K(b *testing.B) { benchmarkThroughput(b, 64<<10) }
func BenchmarkThroughput4K(b *testing.B)  { benchmarkThroughput(b, 4<<10) }
