package podwatch

import corev1 "k8s.io/api/core/v1"

// warnings are the events of what keeps a pod from starting and shows in no status. A node
// tries again, and may well succeed; so what does not name something that is missing must
// have come that often.
var warnings = map[string]int32{
	"FailedCreatePodSandBox":   3,
	"FailedMount":              3,
	"FailedAttachVolume":       3,
	"FailedMapVolume":          3,
	"FailedValidation":         1,
	"NodeAffinity":             1,
	"UnexpectedAdmissionError": 1,
}

// lasting are parts of messages about what does not come by itself.
var lasting = []string{
	"not found", "no runtime for", "RuntimeHandler", "runtime handler", "no such file or directory",
	"is not registered", "not supported", "permission denied", "is forbidden",
}

// failedBy returns the failure that a warning reports of a pod's start; nil for none yet.
func failedBy(e *corev1.Event) *StartError {
	enough, ok := warnings[e.Reason]
	if !ok {
		return nil
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	if count < enough && (!contains(e.Message, lasting) || contains(e.Message, passing)) {
		return nil
	}
	return &StartError{Reason: e.Reason, Message: e.Message, Hint: hintNodes}
}
