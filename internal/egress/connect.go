package egress

import (
	"bufio"
	"net/http"
	"time"
)

// serveConnect serves CONNECT host:port: a tunnel.
func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request, s *served) {
	host := r.URL.Hostname()
	a := p.begin("connect", host, 0)
	defer a.end()
	t, port, err := parseAuthority(r.Host, 0)
	if err == nil {
		a.Port = port
	}
	var up *upstream
	if err == nil {
		up, err = p.connect(r.Context(), t, port)
	}
	if err != nil {
		a.failed(err)
		answer(w, host, a.Port, err)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = up.Close()
		a.failed(&failure{what: "the connection could not be taken over", err: err})
		return
	}
	a.opened(up)
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = up.Close()
		a.note("the sandbox went away")
		return
	}
	client := &peeked{conn, bufio.NewReaderSize(rw.Reader, maxLine)}
	(&tunnel{p: p, a: a, ctx: s.ctx, client: client, stream: s.stream, up: up}).run()
}
