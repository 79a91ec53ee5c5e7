package diagnose

import (
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Report is what was found out about a cluster.
type Report struct {
	Server    string `json:"server"`
	Source    string `json:"source"` // where the cluster was found
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"` // of the API server
	// Missing are the permissions that the caller has not.
	Missing []access.Permission `json:"-"`
	// Network says whether NetworkPolicies are enforced; nil when it was not tried.
	Network *Result `json:"network,omitempty"`

	// Findings are the checks, in the order in which they are best read.
	Findings []backend.Finding `json:"findings"`
}

func fine(check, detail string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelOK, Detail: detail}
}

func weak(check, detail, fix string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelWarning, Detail: detail, Fix: fix}
}

func fatal(check, detail, fix string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: detail, Fix: fix}
}
