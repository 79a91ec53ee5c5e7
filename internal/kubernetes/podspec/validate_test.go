package podspec

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestRefused has each thing that a template may not say. Validate and Build refuse it
// alike, and name the field.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`{metadata: {ownerReferences: [{name: a}]}}`, "metadata.ownerReferences: "},
		{`{metadata: {finalizers: [a/b]}}`, "metadata.finalizers: "},
		{`{metadata: {uid: a}}`, "metadata: it has what only the cluster fills in"},
		{`{metadata: {creationTimestamp: "2026-01-01T00:00:00Z"}}`, "metadata: it has what only the cluster fills in"},
		{`{metadata: {resourceVersion: "1", managedFields: []}}`, "metadata: it has what only the cluster fills in"},
		{`{metadata: {labels: {llmsandbox.dev/owner: a}}}`, "metadata.labels[llmsandbox.dev/owner]: names below llmsandbox.dev/"},
		{`{metadata: {labels: {llmsandbox.dev/mine: a}}}`, "metadata.labels[llmsandbox.dev/mine]: "},
		{`{metadata: {labels: {app.kubernetes.io/managed-by: a}}}`, "metadata.labels[app.kubernetes.io/managed-by]: "},
		{`{metadata: {labels: {app.kubernetes.io/name: a}}}`, "metadata.labels[app.kubernetes.io/name]: "},
		{`{metadata: {labels: {$patch: delete}}}`, "metadata.labels[$patch]: "},
		{`{metadata: {labels: {a: "b c"}}}`, "metadata.labels[a]: "},
		{`{metadata: {annotations: {llmsandbox.dev/info: "{}"}}}`, "metadata.annotations[llmsandbox.dev/info]: "},
		{`{metadata: {annotations: {$patch: replace}}}`, "metadata.annotations[$patch]: "},
		{`{spec: {restartPolicy: Always}}`, "spec.restartPolicy: a sandbox that has ended stays so"},
		{`{spec: {restartPolicy: OnFailure}}`, "spec.restartPolicy: "},
		{`{spec: {ephemeralContainers: [{name: a}]}}`, "spec.ephemeralContainers: "},
		{`{spec: {serviceAccount: a}}`, "spec.serviceAccount: it is an old name"},
		{`{spec: {os: {name: windows}}}`, "spec.os: sandboxes need Linux"},
		{`{spec: {nodeSelector: {kubernetes.io/os: windows}}}`, "spec.os: sandboxes need Linux"},
		{`{spec: {nodeSelector: {$patch: delete}}}`, "spec.nodeSelector.$patch: names that begin with $"},
		{`{spec: {volumes: [{name: a, csi: {driver: d, volumeAttributes: {$retainKeys: a}}}]}}`, "$retainKeys: names that begin with $"},
		{`{spec: {securityContext: {windowsOptions: {hostProcess: true}}}}`, "spec.securityContext.windowsOptions: sandboxes need Linux"},
		{`{spec: {volumes: [{name: llmsandbox-agent, emptyDir: {}}]}}`, "spec.volumes[0].name: llmsandbox-agent: "},
		{`{spec: {volumes: [{name: a, emptyDir: {medium: Memory}}, {name: llmsandbox-x, secret: {secretName: s}}]}}`, "spec.volumes[1].name: llmsandbox-x: "},
		{`{spec: {volumes: [{name: a, emptyDir: {}}]}}`, "spec.volumes[0].emptyDir: a: it has no sizeLimit"},
		{`{spec: {containers: [{command: [sh]}]}}`, "spec.containers[0].command: the container's own program is the agent"},
		{`{spec: {containers: [{name: sandbox, args: [a]}]}}`, "spec.containers[0].args: "},
		{`{spec: {containers: [{lifecycle: {postStart: {exec: {command: [a]}}}}]}}`, "spec.containers[0].lifecycle: what runs beside the agent"},
		{`{spec: {containers: [{livenessProbe: {exec: {command: [a]}}}]}}`, "spec.containers[0].livenessProbe: "},
		{`{spec: {containers: [{readinessProbe: {exec: {command: [a]}}}]}}`, "spec.containers[0].readinessProbe: "},
		{`{spec: {containers: [{startupProbe: {exec: {command: [a]}}}]}}`, "spec.containers[0].startupProbe: "},
		{`{spec: {containers: [{restartPolicy: Always}]}}`, "spec.containers[0].restartPolicy: "},
		{`{spec: {containers: [{restartPolicyRules: [{action: Restart}]}]}}`, "spec.containers[0].restartPolicy: "},
		{`{spec: {containers: [{terminationMessagePath: /dev/termination-log}]}}`, "spec.containers[0].terminationMessagePath: "},
		{`{spec: {containers: [{securityContext: {windowsOptions: {}}}]}}`, "spec.containers[0].securityContext.windowsOptions: "},
		{`{spec: {containers: [{env: [{name: A}, {name: LLMSANDBOX_TOKEN, value: a}]}]}}`, "spec.containers[0].env[1].name: LLMSANDBOX_TOKEN: "},
		{`{spec: {containers: [{volumeMounts: [{name: a, mountPath: /.llmsandbox}]}]}}`, "spec.containers[0].volumeMounts[0].mountPath: /.llmsandbox: it would hide the agent"},
		{`{spec: {containers: [{volumeMounts: [{name: a, mountPath: /x/../.llmsandbox/layers}]}]}}`, "spec.containers[0].volumeMounts[0].mountPath: "},
		{`{spec: {containers: [{volumeMounts: [{name: a, mountPath: /x/..}]}]}}`, "spec.containers[0].volumeMounts[0].mountPath: "},
		{`{spec: {containers: [{volumeMounts: [{name: a, mountPath: data}]}]}}`, `spec.containers[0].volumeMounts[0].mountPath: "data" is not absolute`},
		{`{spec: {containers: [{volumeMounts: [{name: llmsandbox-agent, mountPath: /data}]}]}}`, "spec.containers[0].volumeMounts[0].name: llmsandbox-agent is mounted already"},
		{`{spec: {containers: [{name: sandbox}, {image: x}]}}`, "spec.containers[1].name: it is missing"},
		{`{spec: {containers: [{name: sandbox}, {name: app}]}}`, `spec.containers[1].image: "app" has no image: what is meant for the sandbox's own container goes to the one named "sandbox"`},
		{`{spec: {containers: [{name: sandbox}, {name: agent, image: x}]}}`, "spec.containers[1].name: the container that brings the agent"},
		{`{spec: {containers: [{name: a, image: x}, {name: a, image: x}]}}`, `spec.containers[1].name: "a" is there already`},
		{`{spec: {containers: [{name: sandbox}, {name: sandbox, image: x}]}}`, `spec.containers[1].name: "sandbox" is there already`},
		{`{spec: {initContainers: [{name: agent, image: x}]}}`, "spec.initContainers[0].name: the container that brings the agent"},
		{`{spec: {initContainers: [{name: sandbox, image: x}]}}`, `spec.initContainers[0].name: "sandbox" is there already`},
		{`{spec: {containers: [{name: sandbox}, {name: a, image: x}], initContainers: [{name: a, image: x}]}}`, `spec.initContainers[0].name: "a" is there already`},
		{`{spec: {initContainers: [{name: a}]}}`, `spec.initContainers[0].image: "a" has no image`},
		{`{spec: {containers: [{name: sandbox}, {name: a, image: x, volumeMounts: [{name: llmsandbox-agent, mountPath: /a}]}]}}`, "spec.containers[1].volumeMounts[0].name: of llmsandbox's own volumes"},
		{`{spec: {initContainers: [{name: a, image: x, volumeMounts: [{name: llmsandbox-shm, mountPath: /a}]}]}}`, "spec.initContainers[0].volumeMounts[0].name: of llmsandbox's own volumes"},
		{`{spec: {containers: [{name: sandbox}, {name: a, image: x, securityContext: {windowsOptions: {}}}]}}`, "spec.containers[1].securityContext.windowsOptions: "},
		{`{metadata: {uid: a}, spec: {restartPolicy: Always}}`, "remove the rest; spec.restartPolicy: "},
	} {
		r := with(t, c.template)
		_, err := Build(r)
		for from, err := range map[string]error{"Validate": Validate(r.Template), "Build": err} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s: %v, want %q", from, c.template, err, c.want)
			}
		}
	}
}

func TestValidateNothing(t *testing.T) {
	for _, template := range []*corev1.PodTemplateSpec{nil, {}, {Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}} {
		if err := Validate(template); err != nil {
			t.Errorf("%+v: %v", template, err)
		}
	}
}

// TestInvalid has what a request may not say, alone or together with its template.
func TestInvalid(t *testing.T) {
	for _, c := range []struct {
		name, template, want string
		change               func(*Request)
	}{
		{name: "no id", change: func(r *Request) { r.Spec.ID = "" }, want: `sandbox id ""`},
		{name: "id with a dash at its end", change: func(r *Request) { r.Spec.ID = "a-" }, want: `sandbox id "a-"`},
		{name: "no owner", change: func(r *Request) { r.Owner = "" }, want: `owner ""`},
		{name: "owner", change: func(r *Request) { r.Owner = "pid 1" }, want: `owner "pid 1"`},
		{name: "no token", change: func(r *Request) { r.Token = "" }, want: "without a token"},
		{name: "user", change: func(r *Request) { r.UID = -1 }, want: "user -1"},
		{name: "no image", change: func(r *Request) { r.Image = "" }, want: "neither the sandbox nor the pod template names an image"},
		{name: "image of another container", change: func(r *Request) { r.Image = "" }, template: `{spec: {containers: [{name: sandbox}, {name: a, image: x}]}}`, want: "names an image"},
		{name: "layer", change: layerAt("/.llmsandbox/layers"), want: `layer at "/.llmsandbox/layers"`},
		{name: "relative layer", change: layerAt("a"), want: `layer at "a"`},
		{name: "layer at the root", change: layerAt("/a/.."), want: `layer at "/a/.."`},
		{name: "layer and mount", change: layerAt("/opt/libraries/"), template: `{spec: {containers: [{volumeMounts: [{name: data, mountPath: //opt/libraries}]}]}}`,
			want: "the pod template mounts data at /opt/libraries, where the sandbox has libraries"},
		{name: "two images", template: `{spec: {containers: [{image: x}]}}`, want: "the image is given as registry.example/python:3.13 and, in the pod template, as x"},
		{name: "two pull policies", change: func(r *Request) { r.PullPolicy = corev1.PullAlways }, template: `{spec: {containers: [{imagePullPolicy: Never}]}}`, want: "the pull policy is given as Always"},
		{name: "two runtime classes", change: func(r *Request) { r.RuntimeClass = "a" }, template: `{spec: {runtimeClassName: b}}`, want: "the runtime class is given as a"},
		{name: "two service accounts", change: func(r *Request) { r.ServiceAccount = "a" }, template: `{spec: {serviceAccountName: b}}`, want: "the service account is given as a"},
		{name: "two nodes", change: func(r *Request) { r.NodeSelector = map[string]string{"a": "b"} }, template: `{spec: {nodeSelector: {a: c}}}`, want: "the node selector a is given as b"},
		{name: "two numbers of GPUs", change: func(r *Request) { r.Spec.GPUs = "1" }, template: `{spec: {containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}}`, want: "the number of GPUs is given as 1 and, in the pod template, as 2"},
		{name: "GPUs", change: func(r *Request) { r.Spec.GPUs = "0" }, want: "use a number from 1"},
		{name: "two memory limits", change: required("memory"), template: `{spec: {containers: [{resources: {limits: {memory: 1Gi}}}]}}`, want: "the limit memory and the pod template ask for different values, 512Mi and 1Gi"},
		{name: "two cpu limits", change: required("cpus"), template: `{spec: {containers: [{resources: {limits: {cpu: 2}}}]}}`, want: "the limit cpus and the pod template ask for different values, 1 and 2"},
	} {
		r := plain()
		if c.template != "" {
			r = with(t, c.template)
		}
		if c.change != nil {
			c.change(&r)
		}
		if _, err := Build(r); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func layerAt(target string) func(*Request) {
	return func(r *Request) { r.Spec.Layers = []backend.Layer{{Target: target}} }
}

func required(limits ...string) func(*Request) {
	return func(r *Request) { r.Spec.Limits.Required = limits }
}

// TestSaidTwiceTheSame has what the request and the template both say, and agree on.
func TestSaidTwiceTheSame(t *testing.T) {
	r := with(t, `{spec: {runtimeClassName: a, serviceAccountName: b, nodeSelector: {c: d}, containers: [{image: x, imagePullPolicy: Never, resources: {limits: {memory: 524288Ki, cpu: 1000m}}}]}}`)
	r.RuntimeClass, r.ServiceAccount, r.NodeSelector, r.Image, r.PullPolicy = "a", "b", map[string]string{"c": "d"}, "x", corev1.PullNever
	required("memory", "cpus")(&r)
	build(t, r)
}

func TestEmptyMetadataOfTheCluster(t *testing.T) {
	// What a typed template has without saying it.
	if err := Validate(&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Time{})}}); err != nil {
		t.Error(err)
	}
}
