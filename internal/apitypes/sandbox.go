package apitypes

import (
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// NewSandbox asks for a sandbox.
type NewSandbox struct {
	Language    string            `json:"language,omitempty" doc:"Name or alias; python where it is left out" maxLength:"64" example:"python"`
	Image       string            `json:"image,omitempty" doc:"One that the operator allows; the server's own where it is left out" maxLength:"512"`
	Lifetime    float64           `json:"lifetime_seconds,omitempty" doc:"After how long it ends, whatever runs in it; the operator's default where it is left out" minimum:"0" example:"3600"`
	Idle        float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends; never where it is left out" minimum:"0"`
	Labels      map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Kept with the sandbox"`
	Env         map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to the environment of its programs"`
	Limits      RunLimits         `json:"limits,omitempty"`
	Network     *Network          `json:"network,omitempty" doc:"Nothing where it is left out"`
	Libraries   []string          `json:"libraries,omitempty" maxItems:"128" doc:"Installed before it opens" example:"[\"numpy\"]"`
	Environment string            `json:"environment,omitempty" maxLength:"64" doc:"Name of a Python environment of the server" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Resettable  bool              `json:"resettable,omitempty" doc:"Lets it be reset to what it is at first"`
}

// Changes are what of a sandbox can be changed. What is left out stays as it is.
type Changes struct {
	Lifetime float64  `json:"lifetime_seconds,omitempty" doc:"After how long from now it ends" minimum:"0"`
	Network  *Network `json:"network,omitempty"`
}

// A Sandbox is a sandbox as clients see it.
type Sandbox struct {
	ID       string            `json:"id"`
	Language string            `json:"language" doc:"What code is written in that names no other language" example:"python"`
	Image    string            `json:"image" doc:"Its root filesystem; host is the server's own tool chains" example:"host"`
	Backend  string            `json:"backend" example:"local"`
	Created  time.Time         `json:"created"`
	Deadline *time.Time        `json:"deadline,omitempty" doc:"When it ends"`
	Idle     float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends"`
	Labels   map[string]string `json:"labels,omitempty"`
	Limits   SandboxLimits     `json:"limits"`
}

// SandboxLimits are the limits of a sandbox.
type SandboxLimits struct {
	Memory int64   `json:"memory_bytes,omitempty" doc:"Of the whole sandbox" minimum:"0" example:"536870912"`
	CPUs   float64 `json:"cpus,omitempty" doc:"Of the whole sandbox" minimum:"0" example:"1"`
	PIDs   int64   `json:"pids,omitempty" doc:"Processes and threads of the whole sandbox" minimum:"0" example:"128"`
	Disk   int64   `json:"disk_bytes,omitempty" doc:"Of all that can be written" minimum:"0" example:"1073741824"`
}

// RunLimits are those of each program in a sandbox, beside the sandbox's own.
type RunLimits struct {
	SandboxLimits
	Timeout float64 `json:"timeout_seconds,omitempty" doc:"Wall time of one program, its compilation included" minimum:"0" example:"60"`
	Output  int64   `json:"output_bytes,omitempty" doc:"Of standard output and error of one program together" minimum:"0" example:"10485760"`
}

// Network is what a sandbox may reach.
type Network struct {
	Mode  llmsandbox.NetworkMode `json:"mode" enum:"none,allow,full" doc:"none: nothing; allow: the hosts of allow; full: all public hosts"`
	Allow []string               `json:"allow,omitempty" maxItems:"256" doc:"HOST[:PORT], *.DOMAIN[:PORT], an address or a CIDR" example:"[\"example.org:443\"]"`
}
