package podspec

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestParseTemplate(t *testing.T) {
	for _, text := range []string{
		`{"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true}}`,
		"metadata:\n  labels: {a: b}\nspec:\n  hostNetwork: true\n",
		"---\n# a comment\nmetadata: {labels: {a: b}}\nspec: {hostNetwork: true}\n...\n",
		"metadata: {labels: {a: b}}\nspec: {hostNetwork: true}\n---\n# nothing\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\nspec: {hostNetwork: true}\n",
		"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: of-the-template}\ntemplate:\n  metadata: {labels: {a: b}}\n  spec: {hostNetwork: true}\n",
		"metadata: &m {labels: {a: b}}\nspec: {hostNetwork: true, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: &l {a: b}}}, {topologyKey: b, labelSelector: {matchLabels: *l}}]}}}\n",
	} {
		got, err := ParseTemplate([]byte(text))
		if err != nil || got.Labels["a"] != "b" || !got.Spec.HostNetwork {
			t.Errorf("%s: %+v, %v, want no error, got.Labels[\"a\"] = \"b\", HostNetwork true", text, got, err)
		}
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "it is empty"},
		{"# a comment\n", "it is empty"},
		{"---\n", "it is no object"},
		{"null", "it is no object"},
		{"[]", "it is no object"},
		{"pod", "it is no object"},
		{"---\n---\nspec: {}\n", "more than one document"},
		{"spec: {}\n---\nspec: {}\n", "more than one document"},
		{"spec: {}\n--- {kind: Pod}\n", "more than one document"},
		{"spec: {}\n---\nnull: a\n", "more than one document"},
		{"spec: {containers: [{volumeMounts: {name: a, path: /b}}]}", `unknown field "spec.containers[0].volumeMounts[0].path"`},
		{"spec: {containers: [{volumeMounts: a}]}", "cannot unmarshal string"},
		{"spec: {hostNetwrok: true}", `unknown field "spec.hostNetwrok"`},
		{"spec: {containers: [{}, {Image: x}]}", `unknown field "spec.containers[1].Image"`},
		{"spec: {containers: [{securityContext: {runAsRoot: true}}]}", `unknown field "spec.containers[0].securityContext.runAsRoot"`},
		{`{"spec": {}, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "k": 1, "l": 1}`, "; and 2 more"},
		{"x: &x {a: b}\nspec: {nodeSelector: *x}\n", `unknown field "x"`}, // an anchor is no place to hide a field in
		{"spec: {}\nspec: {}\n", `"spec" already set`},
		{`{"spec": {"hostPID": true, "hostPID": false}}`, `"hostPID" already set`},
		{"spec: {hostNetwork: yes please}", "cannot unmarshal string"},
		{"spec: {containers: [{resources: {limits: {memory: lots}}}]}", "quantities must match"},
		{"spec: {activeDeadlineSeconds: 1.5}", "cannot unmarshal"},
		{"spec: [", "did not find expected"},
		{"apiVersion: v1\nspec: {}\n", `apiVersion "v1" and kind ""`},
		{"kind: Pod\nspec: {}\n", `apiVersion "" and kind "Pod"`},
		{"apiVersion: apps/v1\nkind: Deployment\nspec: {}\n", `kind "Deployment": give a Pod or PodTemplate of v1, or leave both out; of a Deployment or Job, take what is below spec.template`},
		{"apiVersion: v1\nkind: PodTemplate\ntemplate: {spec: {hostNetwrok: true}}\n", `unknown field "template.spec.hostNetwrok"`},
		{"apiVersion: v1\nkind: Pod\nstatus: {phase: Running}\n", "status: it is the cluster's"},
		{strings.Repeat("#", 1<<20+1), "more than 1 MiB"},
		{"spec: {nodeSelector: {a: " + strings.Repeat("[", 20000) + "}}", "exceeded max depth"},
	} {
		got, err := ParseTemplate([]byte(c.text))
		if got != nil || !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestParseTemplateOfAliases: a text that grows without bound when it is read is refused.
func TestParseTemplateOfAliases(t *testing.T) {
	text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		text += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "*" + string(c-1) + "]\n"
	}
	if _, err := ParseTemplate([]byte(text)); err == nil || !strings.Contains(err.Error(), "excessive aliasing") {
		t.Errorf("%.200v, want an error containing \"excessive aliasing\"", err)
	}
}
