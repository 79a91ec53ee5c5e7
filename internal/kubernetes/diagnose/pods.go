package diagnose

import (
	_ "embed"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

//go:embed probe/probe.py
var python string

//go:embed probe/probe.pl
var perl string

// Labels of a probe's pods.
const (
	labelProbe = "llmsandbox.dev/probe" // the probe's id
	labelPart  = "llmsandbox.dev/part"  // which of its pods
)

const (
	port          = 8080
	periodMillis  = 1000
	patientMillis = 15_000
	nobody        = 65534
	// exitNoProgram is how start ends where the image has nothing to run a probe with.
	exitNoProgram = 97
	// exitNoShell is what the kubelet says of a program that could not be started.
	exitNoShell = 128
	result      = "/dev/termination-log"
)

// start runs what the image has. Its arguments are the two programs, and theirs.
const start = `py=$1 pl=$2; shift 2
if command -v python3 >/dev/null 2>&1; then exec python3 -c "$py" "$@"; fi
if command -v perl >/dev/null 2>&1; then exec perl -e "$pl" -- "$@"; fi
exit 97`

// command runs the program of a probe. It is said to the cluster, which would put
// variables into it.
func command(script string, args ...string) []string {
	all := append([]string{"sh", "-c", script, "sh", python, perl}, args...)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "$", "$$")
	}
	return all
}

func (s *session) image() string {
	if s.probe.Image != "" {
		return s.probe.Image
	}
	d, _ := defaultimage.For("python")
	return d.Name
}

// pod is the pod of a part. It holds to Pod Security "restricted".
func (s *session) pod(part string) *corev1.Pod {
	probe := map[string]string{labelProbe: s.id}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name(part),
			Labels: map[string]string{
				podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelName: "llmsandbox-probe", podspec.LabelRole: podspec.RoleProbe,
				labelPart: part,
			},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         new(int64(podspec.ProbeLifetime / time.Second)),
			TerminationGracePeriodSeconds: new(int64(0)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			NodeSelector:                  maps.Clone(s.probe.NodeSelector),
			Tolerations:                   s.probe.Tolerations,
			// On one node, so the pods differ only by the label.
			Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: probe}, TopologyKey: corev1.LabelHostname,
			}}}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{s.container(part)},
		},
	}
	maps.Copy(p.Labels, probe)
	if part == closedServer || part == closedCaller {
		p.Labels[podspec.LabelNetwork] = podspec.NetworkIsolated
	}
	if s.probe.RuntimeClass != "" {
		p.Spec.RuntimeClassName = new(s.probe.RuntimeClass)
	}
	for _, name := range s.probe.PullSecrets {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return p
}

func (s *session) container(part string) corev1.Container {
	c := corev1.Container{
		Name: "probe", Image: s.image(), ImagePullPolicy: s.probe.PullPolicy,
		TerminationMessagePath: result,
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"), corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi"), corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
			},
		},
	}
	address := []string{s.id, strconv.Itoa(port)}
	if part == openServer || part == closedServer {
		c.Command = command(start, append([]string{"serve"}, address...)...)
		c.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command(start, append([]string{"ready"}, address...)...)}},
			PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 100,
		}
		return c
	}
	s.steps[part] = s.questions(part)
	args := append([]string{"call"}, address...)
	args = append(args, strconv.Itoa(periodMillis), strconv.Itoa(patientMillis))
	c.Command = command("exec >"+result+"\n"+start, append(args, s.steps[part]...)...)
	return c
}

// questions are the steps of a caller, over every address that the servers have.
func (s *session) questions(part string) []string {
	steps := func(kind, server string) (all []string) {
		for _, ip := range s.pods[server].Status.PodIPs {
			all = append(all, kind+"="+ip.IP)
		}
		return all
	}
	if part == closedCaller {
		return steps("cut", openServer)
	}
	all := append(steps("must", openServer), steps("cut", closedServer)...)
	return append(all, steps("must", openServer)...)
}
