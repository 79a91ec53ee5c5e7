package apitypes

import "time"

// AuditEntries are entries of the audit log, the latest first.
type AuditEntries struct {
	Entries []AuditEntry `json:"entries" nullable:"false"`
	Next    string       `json:"next,omitempty" doc:"Where there are more: what the parameter after is to be for them"`
}

// An AuditEntry tells what was done with which key, and what became of it.
type AuditEntry struct {
	Time      time.Time `json:"time"`
	KeyID     string    `json:"key_id,omitempty" doc:"The key that it was done with"`
	KeyName   string    `json:"key_name,omitempty"`
	Operation string    `json:"operation" doc:"The operation's id in this document, network-attempt, process-end, login, or mcp/ and the name of a tool" example:"create-sandbox"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Outcome   string    `json:"outcome" doc:"The status of a result, the code of a problem, or ok" example:"ok"`
	Detail    string    `json:"detail,omitempty" doc:"Of an attempt: the protocol, the host and port, and what went through. Of a volume or key: which it is"`
}
