package apitypes

import "time"

// Usage is what a sandbox as a whole uses. What is not known is left out.
type Usage struct {
	CPUMS      *float64 `json:"cpu_ms,omitempty" doc:"CPU time since it was created" minimum:"0"`
	Memory     *int64   `json:"memory_bytes,omitempty" doc:"Now" minimum:"0"`
	PeakMemory *int64   `json:"peak_memory_bytes,omitempty" doc:"The most so far" minimum:"0"`
}

// A Process is a program that was started in a sandbox.
type Process struct {
	ID      uint64    `json:"id" doc:"Its number in the sandbox, which no other has or had"`
	PID     int       `json:"pid" doc:"In the sandbox"`
	Argv    []string  `json:"argv" nullable:"false" doc:"The program and its arguments"`
	Started time.Time `json:"started" doc:"By the sandbox's clock"`
	Running bool      `json:"running" doc:"false once it has ended and what it started has not"`
	CPUMS   float64   `json:"cpu_ms" doc:"CPU time of it and of what it has started"`
	Memory  int64     `json:"memory_bytes" doc:"Of it and of what it has started"`
}

// Processes are the programs that were started in a sandbox, the oldest first.
type Processes struct {
	Processes []Process `json:"processes" nullable:"false"`
}

// NewLibraries are libraries that a sandbox is to have.
type NewLibraries struct {
	Libraries []string `json:"libraries" nullable:"false" minItems:"1" maxItems:"128" doc:"As their ecosystem names them, with a version constraint if need be" example:"[\"numpy>=2\"]"`
}

// A Check asks what a policy says of code.
type Check struct {
	Language string `json:"language,omitempty" maxLength:"64" doc:"Name or alias; python where it is left out" example:"python"`
	Code     string `json:"code" doc:"The program" example:"import os"`
	Policy   string `json:"policy,omitempty" maxLength:"64" doc:"Name of a built-in policy; the server's own where it is left out" example:"production"`
}
