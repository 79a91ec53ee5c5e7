package podexec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestVerdictWords has what Kubernetes 1.34 with containerd and runc answered.
func TestVerdictWords(t *testing.T) {
	const twice = "Internal error occurred: Internal error occurred: "
	const start = twice + `error executing command in container: failed to exec in container: failed to start exec "849c": ` +
		"OCI runtime exec failed: exec failed: unable to start container process: exec: "
	for _, c := range []struct {
		name, said string
		want       error
	}{
		{"pod has ended", `Internal error occurred: unable to upgrade connection: container not found ("sandbox")`, ErrGone},
		{"container has just ended", twice + "error executing command in container: failed to exec in container: failed to load task: no running task found: task c93c not found: not found", ErrGone},
		{"no such file", start + `"/no/such": stat /no/such: no such file or directory: unknown`, ErrNoProgram},
		{"not in PATH", start + `"nosuch": executable file not found in $PATH: unknown`, ErrNoProgram},
		{"no program", start + `"/etc/passwd": permission denied: unknown`, ErrNoProgram},
		{"something else", "Internal error occurred: error dialing backend: dial tcp 192.0.2.1:10250: connect: connection refused", nil},
	} {
		words, err := json.Marshal(failed(c.said))
		if err != nil {
			t.Fatal(err)
		}
		err = verdict(words, "")
		if !apierrors.IsInternalError(err) || errors.Is(err, ErrGone) != (c.want == ErrGone) || errors.Is(err, ErrNoProgram) != (c.want == ErrNoProgram) {
			t.Errorf("%s: %v, want a InternalError error, errors.Is(err, ErrGone) = %v, errors.Is(err, ErrNoProgram) = %v", c.name, err, c.want == ErrGone, c.want == ErrNoProgram)
		}
		if strings.Contains(err.Error(), "Internal error") {
			t.Errorf("%s: %v, want an error without \"Internal error\"", c.name, err)
		}
	}
}
