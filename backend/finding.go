package backend

// A Finding is the outcome of one check of what a backend makes its sandboxes with, such
// as a container engine or a cluster.
type Finding struct {
	Check  string `json:"check"` // what was looked at: "socket", "permissions", ...
	Level  Level  `json:"level"`
	Detail string `json:"detail"`        // what was found
	Fix    string `json:"fix,omitempty"` // what to do about it, in one or several lines, unless Level is LevelOK
}

// Level is how a check came out.
type Level string

// The levels of a Finding.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning" // sandboxes work, but something is weaker, slower or harder to understand
	LevelFailure Level = "failure" // sandboxes do not work until it is repaired
)
