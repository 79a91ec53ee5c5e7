package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// The labels of everything that is made on an engine. What is secret is not in them.
const (
	labelID       = "llmsandbox.id"       // of a sandbox
	labelRole     = "llmsandbox.role"     // "sandbox", "fill", "agent", "layer"
	labelOwner    = "llmsandbox.owner"    // see owner
	labelLanguage = "llmsandbox.language" //
	labelImage    = "llmsandbox.image"    // its name as resolved
	labelCreated  = "llmsandbox.created"  // RFC 3339
	labelDeadline = "llmsandbox.deadline" // RFC 3339; none: not set. See also moved
	labelIdle     = "llmsandbox.idle"     // a duration; none: not set
	labelLimits   = "llmsandbox.limits"   // JSON of backend.Limits
	labelLabels   = "llmsandbox.labels"   // JSON, the caller's own
)

const (
	roleSandbox = "sandbox"
	roleFill    = "fill"
)

// encode turns a sandbox's description into labels.
func encode(info backend.Info) (map[string]string, error) {
	limits, err := json.Marshal(info.Limits)
	if err != nil {
		return nil, fmt.Errorf("limits as a label: %w", err)
	}
	own, err := json.Marshal(info.Labels)
	if err != nil {
		return nil, fmt.Errorf("labels as a label: %w", err)
	}
	l := map[string]string{
		labelID: info.ID, labelRole: roleSandbox, labelOwner: thisProcess().String(),
		labelLanguage: info.Language, labelImage: info.Image,
		labelCreated: info.Created.Format(time.RFC3339Nano), labelLimits: string(limits), labelLabels: string(own),
	}
	if !info.Deadline.IsZero() {
		l[labelDeadline] = info.Deadline.Format(time.RFC3339Nano)
	}
	if info.IdleTimeout > 0 {
		l[labelIdle] = info.IdleTimeout.String()
	}
	return l, nil
}

// decode is encode's reverse. Labels of other programs may be anything.
func decode(name string, l map[string]string) (backend.Info, error) {
	info := backend.Info{ID: l[labelID], Backend: name, Language: l[labelLanguage], Image: l[labelImage]}
	if info.ID == "" {
		return info, fmt.Errorf("the container has no label %s", labelID)
	}
	var err error
	if info.Created, err = time.Parse(time.RFC3339Nano, l[labelCreated]); err != nil {
		return info, fmt.Errorf("label %s: %w", labelCreated, err)
	}
	if d := l[labelDeadline]; d != "" {
		if info.Deadline, err = time.Parse(time.RFC3339Nano, d); err != nil {
			return info, fmt.Errorf("label %s: %w", labelDeadline, err)
		}
	}
	if d := l[labelIdle]; d != "" {
		if info.IdleTimeout, err = time.ParseDuration(d); err != nil {
			return info, fmt.Errorf("label %s: %w", labelIdle, err)
		}
	}
	if err := json.Unmarshal([]byte(l[labelLimits]), &info.Limits); err != nil {
		return info, fmt.Errorf("label %s: %w", labelLimits, err)
	}
	if err := json.Unmarshal([]byte(l[labelLabels]), &info.Labels); err != nil {
		return info, fmt.Errorf("label %s: %w", labelLabels, err)
	}
	info.Owner = "unknown"
	if o, err := parseOwner(l[labelOwner]); err == nil {
		info.Owner = o.words()
	}
	return info, nil
}
