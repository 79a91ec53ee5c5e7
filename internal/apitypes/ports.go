package apitypes

import "time"

// A Port is one that a program in a sandbox listens on.
type Port struct {
	Port    int    `json:"port" minimum:"1" maximum:"65535" example:"8000"`
	Address string `json:"address" doc:"That it listens on" example:"127.0.0.1"`
	Family  string `json:"family" enum:"ipv4,ipv6"`
}

// Ports are those that programs in a sandbox listen on by TCP.
type Ports struct {
	Ports []Port `json:"ports" nullable:"false" maxItems:"1024" doc:"By their numbers"`
}

// A NewShare asks for an address by which anybody can use a port.
type NewShare struct {
	Port    int     `json:"port" minimum:"1" maximum:"65535" doc:"A TCP port of the sandbox's loopback" example:"8000"`
	Expires float64 `json:"expires_seconds,omitempty" minimum:"0" maximum:"86400" doc:"How long the address is valid; an hour where it is left out" example:"600"`
}

// A Share is an address by which anybody can use a port.
type Share struct {
	URL     string    `json:"url" doc:"Who opens it has the port, and is led to the port's own address"`
	Expires time.Time `json:"expires"`
}
