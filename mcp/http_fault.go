package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A fault is why a request is refused: a status, and what is said in the body.
type fault struct {
	status  int
	message string
}

func newFault(status int, format string, args ...any) *fault {
	return &fault{status, fmt.Sprintf(format, args...)}
}

// faultCode is of the range that JSON-RPC leaves to servers.
const faultCode = -32000

// write sends the fault as a JSON-RPC error, which clients of the protocol can show.
func (f *fault) write(w http.ResponseWriter) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": faultCode, "message": f.message},
	})
	if err != nil { // never: it is made of text and numbers
		http.Error(w, f.message, f.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch f.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "10")
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(append(body, '\n')) // a client that has disconnected misses nothing
}
