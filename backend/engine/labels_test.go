package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestLabelsRoundTrip(t *testing.T) {
	info := backend.Info{
		ID: "sb-1", Backend: "docker", Image: "py:1", Language: "python", Created: time.Unix(1e9, 5).UTC(),
		Deadline: time.Unix(2e9, 0).UTC(), IdleTimeout: 90 * time.Second, Labels: map[string]string{"team": "a\nb"},
		Limits: backend.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 7, Disk: 9}, Owner: "pid " + selfPID(),
	}
	l, err := encode(info)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode("docker", l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(info, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	for _, name := range []string{labelID, labelCreated, labelLimits, labelLabels} {
		broken := map[string]string{}
		for k, v := range l {
			broken[k] = v
		}
		broken[name] = ""
		if _, err := decode("docker", broken); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	broken := map[string]string{}
	for k, v := range l {
		broken[k] = v
	}
	broken[labelDeadline], broken[labelOwner] = "soon", "me"
	if _, err := decode("docker", broken); err == nil {
		t.Error("a deadline of 'soon' was taken: got no error, want an error")
	}
}

func selfPID() string { return strings.Split(thisProcess().String(), "/")[2] }

func TestAbandoned(t *testing.T) {
	alive := thisProcess()
	other := alive
	other.start++
	elsewhere := other
	elsewhere.boot = "another machine"
	for _, c := range []struct {
		name   string
		labels map[string]string
		state  container.ContainerState
		want   bool
	}{
		{"of this process", map[string]string{labelOwner: alive.String()}, container.StateRunning, false},
		{"of a process that had our pid", map[string]string{labelOwner: other.String()}, container.StateRunning, true},
		{"of another machine", map[string]string{labelOwner: elsewhere.String()}, container.StateRunning, false},
		{"of an owner that cannot be read", map[string]string{labelOwner: "x"}, container.StateRunning, false},
		{"being made", map[string]string{labelOwner: alive.String()}, container.StateCreated, false},
		{"that has ended", map[string]string{labelOwner: elsewhere.String()}, container.StateExited, true},
		{"past its deadline", map[string]string{labelOwner: elsewhere.String(), labelDeadline: "2001-01-01T00:00:00Z"}, container.StateRunning, false}, // its agent is asked
		{"with time left", map[string]string{labelOwner: alive.String(), labelDeadline: "2999-01-01T00:00:00Z"}, container.StateRunning, false},
	} {
		if got := abandoned(container.Summary{Labels: c.labels, State: c.state}); got != c.want {
			t.Errorf("a container %s: %v, want %v", c.name, got, c.want)
		}
	}
}
