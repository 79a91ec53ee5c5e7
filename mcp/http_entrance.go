package mcp

import (
	"net"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An entrance lets through to the protocol what its options allow. A request's body is only
// read when everything before it was in order.
type entrance struct {
	options HTTPOptions
	server  *sdk.Server
	callers callers
	origins origins
	hosts   hosts
	next    http.Handler

	mu       sync.Mutex
	arriving int // requests that may become clients
}

func (e *entrance) ServeHTTP(response http.ResponseWriter, r *http.Request) {
	w := newTimedWriter(response, e.options.times.write)
	defer w.finish()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	f := boundBody(w, e.options.times.body)
	if f == nil {
		f = e.refuse(w, r)
	}
	if f != nil {
		f.write(w)
		return
	}
	if r.Method == http.MethodOptions { // a browser's question, answered by the headers
		w.WriteHeader(http.StatusNoContent)
		return
	}
	caller, f := e.callers.find(r)
	if f == nil {
		f = readBody(w, r, e.options.MaxBody)
	}
	if f != nil {
		f.write(w)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
		if !e.arrive() {
			newFault(http.StatusServiceUnavailable, "%d clients are connected, which is as many as this server takes: end one, or try again later", e.options.MaxClients).write(w)
			return
		}
		defer e.arrived()
	}
	e.next.ServeHTTP(w, withCaller(r, caller))
}

// refuse looks at where a request is for and where it comes from, before anything else of
// it is believed. It sets the headers that a browser wants of what it allows.
func (e *entrance) refuse(w http.ResponseWriter, r *http.Request) *fault {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address := addressOf(local)
	if !e.hosts.allow(r.Host, address) {
		return newFault(http.StatusForbidden, "the Host header %.80q is none of this server's names: use its address, or name it with --allow-host", r.Host)
	}
	if r.URL.Path != HTTPPath {
		return newFault(http.StatusNotFound, "there is nothing here: the endpoint is %s", HTTPPath)
	}
	return e.origins.check(w.Header(), r, address)
}

// arrive makes room for one more client. The requests that may become one count while
// they are answered, so a burst may be turned away a little early and never too late.
func (e *entrance) arrive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.arriving
	for range e.server.Sessions() {
		n++
	}
	if n >= e.options.MaxClients {
		return false
	}
	e.arriving++
	return true
}

func (e *entrance) arrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arriving--
}
