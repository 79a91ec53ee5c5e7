package diagnose

import "github.com/llmsandbox/llmsandbox/internal/kubernetes/access"

// A Report is what was found out about a cluster.
type Report struct {
	Server    string `json:"server"`
	Source    string `json:"source"` // where the cluster was found
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"` // of the API server
	// Missing are the permissions that the caller has not.
	Missing []access.Permission `json:"-"`
	// Network tells whether NetworkPolicies are enforced; nil when it was not tried.
	Network *Result `json:"network,omitempty"`

	lines []Line
}

// A Line is the outcome of one check.
type Line struct {
	Name string `json:"name"` // what was looked at: "version", "permissions", ...
	// OK tells that nothing has to be done.
	OK bool `json:"ok"`
	// Fatal tells that sandboxes do not work until it is repaired. What is neither OK nor
	// Fatal makes them weaker, slower or harder to understand.
	Fatal  bool   `json:"fatal,omitempty"`
	Detail string `json:"detail"`        // what was found
	Fix    string `json:"fix,omitempty"` // what to do about it; it may have several lines
}

// Lines are the checks, in the order in which they are best read.
func (r *Report) Lines() []Line { return r.lines }

// Works tells that no check found what keeps sandboxes from working.
func (r *Report) Works() bool {
	for _, l := range r.lines {
		if l.Fatal {
			return false
		}
	}
	return true
}

func fine(name, detail string) Line { return Line{Name: name, OK: true, Detail: detail} }

func weak(name, detail, fix string) Line { return Line{Name: name, Detail: detail, Fix: fix} }

func fatal(name, detail, fix string) Line {
	return Line{Name: name, Fatal: true, Detail: detail, Fix: fix}
}
