package engine

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
)

func TestLabelsRoundTrip(t *testing.T) {
	info := backend.Info{
		ID: "sb-1", Backend: "docker", Image: "py:1", Language: "python", Created: time.Unix(1e9, 5).UTC(),
		Deadline: time.Unix(2e9, 0).UTC(), IdleTimeout: 90 * time.Second, Labels: map[string]string{"team": "a\nb"},
		Limits: backend.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 7, Disk: 9}, Owner: "pid " + selfPID(),
		Volumes: []backend.VolumeMount{{Name: "a", Target: "/a", ReadOnly: true}},
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
	broken[labelVolumes] = "none"
	if _, err := decode("docker", broken); err == nil || !strings.Contains(err.Error(), labelVolumes) {
		t.Errorf("volumes 'none': %v, want an error that names the label", err)
	}
	broken[labelDeadline], broken[labelOwner], broken[labelVolumes] = "soon", "me", ""
	if _, err := decode("docker", broken); err == nil {
		t.Error("a deadline of 'soon' was taken: got no error, want an error")
	}
}

// TestAttachedCapabilities attaches with a backend that knows neither the engine's limits nor the settings that
// the sandbox was made with: it says what was recorded then, and asks the engine nothing more.
func TestAttachedCapabilities(t *testing.T) {
	made := &creation{
		backend: &Backend{flavor: Flavor{Name: "docker"}, options: Options{Settings: settings.Settings{Network: "bridge"}}},
		engine:  Host{Limits: []backend.Control{{Name: "memory", Why: "no cgroup"}}, Runtime: "runsc"},
		config:  &container.Config{}, host: &container.HostConfig{}, spec: backend.Spec{ID: "sb-1"},
	}
	var err error
	if made.config.Labels, err = encode(backend.Info{ID: "sb-1"}); err != nil {
		t.Fatal(err)
	}
	if err := made.recordEnforced(); err != nil {
		t.Fatal(err)
	}
	if made.config.Env, err = agentEnv("token", backend.Guest{Workdir: defaultWorkdir}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, enforced, want string }{
		{"recorded", made.config.Labels[labelEnforced], ""},
		{"not recorded", "", labelEnforced},
		{"broken", "{", labelEnforced},
	} {
		t.Run(c.name, func(t *testing.T) {
			labels := maps.Clone(made.config.Labels)
			labels[labelEnforced] = c.enforced
			answer, err := json.Marshal(map[string]any{
				"Id": "c", "State": map[string]any{"Running": true}, "Config": map[string]any{"Labels": labels, "Env": made.config.Env},
			})
			if err != nil {
				t.Fatal(err)
			}
			engine := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path.Base(r.URL.Path) {
				case "json":
					_, _ = w.Write(answer)
				case "volumes":
					_, _ = io.WriteString(w, `{"Volumes":[]}`)
				default:
					<-r.Context().Done() // the wait for its end
				}
			})
			b, err := New(engine, Flavor{Name: "docker", Host: func(context.Context, *client.Client) (Host, error) {
				t.Error("the engine was asked what it can, want the sandbox's own record")
				return Host{}, nil
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := b.Attach(t.Context(), "sb-1")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want an error about %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(made.enforced, m.Capabilities()); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
			if n, _ := m.Capabilities().Get("network"); n.Enforced || !strings.Contains(n.Why, "loosened") {
				t.Errorf("network: %+v, want it loosened", n)
			}
			if err := m.Close(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// Changes of the caller's own that leave no labels leave none to attach by.
func TestRecordWithoutLabels(t *testing.T) {
	c := &creation{backend: &Backend{}, config: &container.Config{}, host: &container.HostConfig{}}
	if err := c.recordEnforced(); err != nil || c.config.Labels != nil {
		t.Errorf("%v, labels %v, want no error and none", err, c.config.Labels)
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
