package llmsandbox

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/gateway"
)

// A NetworkAttempt is one try of the sandbox to reach something.
type NetworkAttempt struct {
	// Time is when it began.
	Time time.Time
	// Protocol is "http" for a request in plain HTTP, "connect" or "socks5" for a tunnel;
	// empty when the attempt ended before it said so.
	Protocol string
	// Name is the host that was asked for, Address the one that was dialled, if any.
	Name    string
	Address netip.Addr
	Port    uint16
	// Allowed says that the rules let it through.
	Allowed bool
	// Reason says why it was refused, or what went wrong with what was allowed.
	Reason string
	// Sent and Received are bytes from and to the sandbox: of a request its bodies, of
	// a tunnel all that went through it.
	Sent, Received int64
	// Duration is from the request to the connection's end; 0 while it is open.
	Duration time.Duration
}

type attemptJSON struct {
	Time       time.Time `json:"time"`
	Protocol   string    `json:"protocol,omitempty"`
	Name       string    `json:"name"`
	Address    string    `json:"address,omitempty"`
	Port       uint16    `json:"port"`
	Allowed    bool      `json:"allowed"`
	Reason     string    `json:"reason,omitempty"`
	Sent       int64     `json:"sent_bytes"`
	Received   int64     `json:"received_bytes"`
	DurationMS float64   `json:"duration_ms"`
}

// MarshalJSON writes the attempt with snake_case names, sizes in bytes and the duration
// in milliseconds.
func (a NetworkAttempt) MarshalJSON() ([]byte, error) {
	out := attemptJSON{
		Time: a.Time, Protocol: a.Protocol, Name: a.Name, Port: a.Port, Allowed: a.Allowed, Reason: a.Reason,
		Sent: a.Sent, Received: a.Received, DurationMS: float64(a.Duration.Microseconds()) / 1000,
	}
	if a.Address.IsValid() {
		out.Address = a.Address.String()
	}
	return json.Marshal(out)
}

// attempts ends a record, see [gateway.Record.End].
func attempts(r *gateway.Record, settle time.Duration) ([]NetworkAttempt, int) {
	ended, dropped := r.End(settle)
	var list []NetworkAttempt
	for _, a := range ended {
		list = append(list, NetworkAttempt(a))
	}
	return list, dropped
}
