package testcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A Request is one that the API server has answered, or begun to answer: a watch or a
// stream that is still open counts.
type Request struct {
	Verb        string // "create", "get", "watch", ...; an exec is a "create" or a "get" of a pod
	Resource    string // "pods"; "" of what is none, such as /version
	Subresource string // "exec"
	Namespace   string
	Name        string
	UserAgent   string
	Code        int // of HTTP
}

// Requests are all so far, in the order in which they were answered, but for those of the
// cluster's own parts.
func (c *Cluster) Requests(t testing.TB) []Request {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.kit.state, "log", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseAudit(data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// parseAudit reads the API server's log, in which one request may appear twice. Its
// last line may be in the making.
func parseAudit(data []byte) ([]Request, error) {
	var list []Request
	seen := map[string]bool{}
	end := bytes.LastIndexByte(data, '\n')
	for line := range bytes.Lines(data[:end+1]) {
		var e struct {
			AuditID        string `json:"auditID"`
			Verb           string `json:"verb"`
			UserAgent      string `json:"userAgent"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Namespace   string `json:"namespace"`
				Name        string `json:"name"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the API server's audit log: %w: %s", err, line)
		}
		if seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		list = append(list, Request{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name, e.UserAgent, e.ResponseStatus.Code})
	}
	return list, nil
}
