package egress

import (
	"encoding/json"
	"time"
)

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
func (a Attempt) MarshalJSON() ([]byte, error) {
	out := attemptJSON{
		Time: a.Time, Protocol: a.Protocol, Name: a.Name, Port: a.Port, Allowed: a.Allowed, Reason: a.Reason,
		Sent: a.Sent, Received: a.Received, DurationMS: float64(a.Duration.Microseconds()) / 1000,
	}
	if a.Address.IsValid() {
		out.Address = a.Address.String()
	}
	return json.Marshal(out)
}
