package apitypes

import (
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// NewSandbox asks for a sandbox.
type NewSandbox struct {
	Template    string            `json:"template,omitempty" doc:"Name of a template of the server, from which it has what is left out here" maxLength:"40" pattern:"^[a-z0-9-]+$"`
	Language    string            `json:"language,omitempty" doc:"Name or alias; python where it is left out" maxLength:"64" example:"python"`
	Image       string            `json:"image,omitempty" doc:"One that the operator allows, or project: and the name of one of the project; the server's own where it is left out" maxLength:"512"`
	Lifetime    float64           `json:"lifetime_seconds,omitempty" doc:"After how long it ends, whatever runs in it; the operator's default where it is left out" minimum:"0" example:"3600"`
	Idle        float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends; never where it is left out" minimum:"0"`
	Labels      map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Kept with the sandbox"`
	Env         map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to the environment of its programs"`
	Limits      RunLimits         `json:"limits,omitempty"`
	Network     *Network          `json:"network,omitempty" doc:"Nothing where it is left out"`
	Libraries   []string          `json:"libraries,omitempty" maxItems:"128" doc:"Installed before it opens" example:"[\"numpy\"]"`
	Environment string            `json:"environment,omitempty" maxLength:"64" doc:"Name of a Python environment of the server" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Resettable  bool              `json:"resettable,omitempty" doc:"Lets it be reset to what it is at first"`
	Imports     []string          `json:"imports,omitempty" maxItems:"64" doc:"Modules that Python has imported before anything runs" example:"[\"json.tool\"]"`
	Secrets     []Secret          `json:"secrets,omitempty" maxItems:"100" doc:"Values for requests to their hosts, which never enter it: a variable of each has a placeholder there. It needs a network that reaches the hosts"`
	Artifacts   *Artifacts        `json:"artifacts,omitempty" doc:"What results carry beside the output; the operator's where it is left out"`
	Volumes     []VolumeMount     `json:"volumes,omitempty" maxItems:"16" doc:"Volumes of the project, in which files stay"`
	Workdir     string            `json:"workdir,omitempty" maxLength:"4096" doc:"Absolute path of the working directory; the backend's where it is left out" example:"/srv/project"`
	User        string            `json:"user,omitempty" maxLength:"129" doc:"What code runs as. Another one than the operator's needs an operator who lets code be root"`
	Sudo        bool              `json:"sudo,omitempty" doc:"Lets code become root of the sandbox, where the operator's own sandboxes can"`
	Writable    bool              `json:"writable_root,omitempty" doc:"Lets code write everywhere in the sandbox, where the operator's own sandboxes can"`
	BestEffort  bool              `json:"best_effort,omitempty" doc:"Takes a sandbox for which a limit cannot be enforced, where the operator does, too"`
}

// A Secret is a value that never enters a sandbox.
type Secret struct {
	Name  string   `json:"name" minLength:"1" maxLength:"256" doc:"Of the environment variable that has its placeholder" example:"API_TOKEN"`
	Value string   `json:"value" minLength:"8" maxLength:"4096" doc:"What takes the place of the placeholder in headers and queries of requests to the hosts"`
	Hosts []string `json:"hosts" nullable:"false" minItems:"1" maxItems:"256" doc:"HOST[:PORT] or *.DOMAIN[:PORT]" example:"[\"example.org:443\"]"`
	Body  bool     `json:"body,omitempty" doc:"Also in their bodies"`
}

// Artifacts are what results carry beside the output.
type Artifacts struct {
	Off      bool  `json:"off,omitempty" doc:"Nothing"`
	Unshown  bool  `json:"unshown,omitempty" doc:"Also figures that were made and never shown or saved"`
	MaxCount int   `json:"max_count,omitempty" minimum:"0" doc:"At most so many of one run; the operator's bound where it is left out"`
	MaxBytes int64 `json:"max_bytes,omitempty" minimum:"0" doc:"Of one run together; the operator's bound where it is left out"`
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
	Deadline time.Time         `json:"deadline,omitzero" doc:"When it ends"`
	Paused   bool              `json:"paused,omitzero" doc:"Nothing runs in it until it is resumed; its deadline moves by as long"`
	Idle     float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends"`
	Labels   map[string]string `json:"labels,omitempty"`
	Limits   SandboxLimits     `json:"limits"`
	Volumes  []VolumeMount     `json:"volumes,omitempty"`
}

// Sandboxes are those of a project, in the order of their creation.
type Sandboxes struct {
	Sandboxes []Sandbox `json:"sandboxes" nullable:"false"`
	Next      string    `json:"next,omitempty" doc:"Where there are more, what after is to be for them"`
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
