package database

import "time"

// An AuditEvent records a request that creates, uses or removes something, whether it succeeded or not, or a program's attempt to connect
// to a host. It contains neither code nor output.
type AuditEvent struct {
	Number int64     `json:"number"` // later events of a log have larger ones; 0 until they are in one
	Time   time.Time `json:"at"`     // of the request or attempt
	// KeyID, KeyName and ProjectID are of who it was.
	KeyID     string `json:"key_id,omitempty"`
	KeyName   string `json:"key_name,omitempty"`
	ProjectID string `json:"project_id,omitempty"`
	// Operation is the operation's id in the OpenAPI document, such as run-in-sandbox, or httpapi.NetworkAttempt or httpapi.ProcessEnd, or httpapi.ToolPrefix
	// and the name of a tool, and Sandbox the id of the sandbox, if that is known.
	Operation string `json:"action"`
	Sandbox   string `json:"sandbox,omitempty"`
	// Status is that of the answer, 0 of an attempt, end or tool; a log need not have it. Outcome says more: the status of the program's result, the code of
	// the problem, or ok; of an attempt why it was refused, or ok.
	Status  int    `json:"-"`
	Outcome string `json:"outcome"`
	// Detail is of an attempt the protocol, the host and port as the program named them, and what went through, of a volume or image its name, of a key its
	// name and id; else empty.
	Detail string `json:"detail,omitempty"`
}

// An AuditQuery selects events of a log. What is empty or zero selects all.
type AuditQuery struct {
	ProjectID, Operation, Sandbox, Outcome string
	Key                                    string    // the id or the name of a key
	Since, Until                           time.Time // from Since on, and before Until
	Before                                 int64     // only events with a smaller number
	Limit                                  int       // of events, the latest first
}
