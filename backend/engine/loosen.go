package engine

import "github.com/llmsandbox/llmsandbox/backend"

// loosenedControls are our names for what settings calls otherwise.
var loosenedControls = map[string]string{
	"no-new-privileges": "no-new-privs",
	"read-only-root":    "filesystem",
	"host-files":        "filesystem",
	"ipc-namespace":     "ipc",
	"pid-namespace":     "processes",
}

// loosen takes back what the caller's settings have loosened. What they loosen beside
// the controls of every backend is added.
func (b *Backend) loosen(all []backend.Control) []backend.Control {
	for _, l := range b.options.Settings.Loosened() {
		name := l.Control
		if own, ok := loosenedControls[name]; ok {
			name = own
		}
		loose := backend.Control{Name: name, Why: "the caller loosened it: " + l.What}
		found := false
		for i := range all {
			// Without isolation nothing of it holds.
			if all[i].Name != name && name != "isolation" {
				continue
			}
			if all[i].Enforced {
				all[i] = backend.Control{Name: all[i].Name, Why: loose.Why}
			} else {
				all[i].Why += "; " + loose.Why
			}
			found = true
		}
		if !found {
			all = append(all, loose)
		}
	}
	return all
}
