package podspec

import (
	"maps"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// base is the safe pod before any change.
func base(r Request) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				LabelManagedBy: ManagedBy, LabelName: NameSandbox, LabelRole: RoleSandbox,
				LabelSandbox: r.Spec.ID, LabelOwner: r.Owner, LabelNetwork: NetworkIsolated,
			},
			Annotations: map[string]string{annotationContainer: Container},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			InitContainers:               []corev1.Container{initContainer(r)},
			Containers:                   []corev1.Container{sandboxContainer(r)},
			Volumes:                      volumes(r),
			SecurityContext:              podSecurity(r),
			Hostname:                     "sandbox",
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			ShareProcessNamespace:        new(false),
			// The agent heeds no signal, so a grace period would be waited for in vain.
			TerminationGracePeriodSeconds: new(int64(0)),
			// The pod asks no name server: what may be looked up, the client looks up.
			DNSPolicy:          corev1.DNSNone,
			DNSConfig:          &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},
			NodeSelector:       maps.Clone(r.NodeSelector),
			ServiceAccountName: r.ServiceAccount,
		},
	}
	maps.Copy(t.Annotations, r.Annotations)
	if r.UID > 0 {
		t.Annotations[annotationUser] = strconv.FormatInt(r.UID, 10)
	}
	if r.RuntimeClass != "" {
		t.Spec.RuntimeClassName = new(r.RuntimeClass)
	}
	for _, name := range r.PullSecrets {
		t.Spec.ImagePullSecrets = append(t.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return t
}

// podSecurity holds for every container of the pod that says nothing else. There is no
// fsGroup: the volumes may be written by everybody as it is, and it would make their
// directories set-gid.
func podSecurity(r Request) *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if r.UID > 0 {
		s.RunAsUser, s.RunAsGroup = new(r.UID), new(r.UID)
	}
	return s
}

func sandboxContainer(r Request) corev1.Container {
	c := corev1.Container{
		Name: Container, Image: r.Image, ImagePullPolicy: r.PullPolicy,
		Command:                []string{AgentFile},
		Args:                   append([]string{"serve"}, literally(r.Args)...),
		Env:                    []corev1.EnvVar{{Name: EnvToken, Value: literal(r.Token)}},
		SecurityContext:        containerSecurity(),
		TerminationMessagePath: closedFile,
		VolumeMounts: []corev1.VolumeMount{
			{Name: VolumeAgent, MountPath: AgentDir, ReadOnly: true},
			{Name: VolumeWorkdir, MountPath: Workdir},
			{Name: VolumeTemp, MountPath: TempDir},
			{Name: volumeShm, MountPath: shmDir},
		},
	}
	if len(r.Spec.Layers) > 0 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeLayers, MountPath: LayerDir, ReadOnly: true})
	}
	for i, l := range r.Spec.Layers {
		if !l.Writable { // the agent links the files of the others to their target
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: volumeLayers, SubPath: strconv.Itoa(i), MountPath: path.Clean(l.Target), ReadOnly: true,
			})
		}
	}
	return c
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		Privileged:               new(false),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// literal keeps the cluster from putting variables into a text: "$$" is "$".
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func literally(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = literal(a)
	}
	return out
}
