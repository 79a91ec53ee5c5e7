package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// backendName is the backend that the controls are those of.
const backendName = "kubernetes"

// Controls returns the controls of code in a pod that Build has made, as it is or as the cluster
// has changed it. l are the limits that were asked for.
func Controls(p *corev1.Pod, l backend.Limits, policies Policies) backend.Capabilities {
	v := viewOf(p, Container)
	all := []backend.Control{
		on("user", "securityContext", "the code is not root inside; the agent is of the same user"),
		v.agent(),
		on("filesystem", "mount namespace", "the image read-only; "+v.workdir()+" and "+TempDir+" private"),
		on("processes", "pid namespace", ""),
		v.network(policies),
		on("ipc", "IPC namespace", ""),
		on("capabilities", "securityContext", "none are held by the code"),
		on("no-new-privs", "securityContext, agent", ""),
		on("core-dumps", "RLIMIT_CORE 1", ""),
		on("seccomp", "the agent's filter", v.filters()),
		v.userNamespace(),
		{Name: "landlock", Why: "it is not used in containers, whose mounts protect the same files", Fix: "where runs must not share files, give each a sandbox of its own"},
		on("service-account", "automountServiceAccountToken", "no token of the cluster's API is inside"),
		limit("memory", "cgroup", l.Memory > 0, v.limit(corev1.ResourceMemory)),
		limit("cpus", "cgroup", l.CPUs > 0, v.limit(corev1.ResourceCPU)),
		v.pids(l.PIDs),
		v.disk(l.Disk),
		v.abandoned(),
	}
	all = append(all, v.volumes()...)
	all = agenthost.Powers(all, v.asRoot(), v.writableRoot())
	return backend.Capabilities{Backend: backendName, Isolation: v.isolation(), Controls: loosen(all, v.loosened())}
}

func on(what, by, detail string) backend.Control {
	return backend.Control{Name: what, Enforced: true, By: by, Detail: detail}
}

// limit reports whether the pod has a limit, and of one that was not asked for that it is not
// there.
func limit(name, by string, asked, set bool) backend.Control {
	switch {
	case set:
		return on(name, by, "")
	case !asked:
		return backend.Control{Name: name, Why: backend.NotAsked}
	}
	return backend.Control{Name: name, Why: "the pod has no such limit", Fix: "leave the limit to the sandbox, and out of the pod template"}
}

// isolation names what the pod is isolated by.
func (v view) isolation() string {
	if class := v.runtimeClass(); class != "" {
		return fmt.Sprintf("pod (runtime class %s)", class)
	}
	return "pod"
}

// agent reports whether code, which is of the agent's user, is kept from ending it and from
// looking into it. Linux does so with the first process of a pid namespace.
func (v view) agent() backend.Control {
	if class := v.runtimeClass(); class != "" {
		return backend.Control{Name: "agent",
			Why: fmt.Sprintf("the kernel of runtime class %s need not protect the first process of a pod from code of its user, which may then end the agent: its run is lost, and so is the sandbox", class),
			Fix: "give code that must not end what else runs in its sandbox one of its own"}
	}
	return on("agent", "pid 1, non-dumpable", "code can neither end it nor look into it")
}

// filters returns which filters of system calls there are beside the agent's.
func (v view) filters() string {
	switch p := v.seccomp(); {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		return "the container runtime has none of its own"
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		return "and the node's profile that the pod template names"
	}
	return "and the container runtime's own"
}

func (v view) userNamespace() backend.Control {
	if u := v.pod.Spec.HostUsers; u != nil && !*u {
		return on("user-namespace", "user namespace", "root inside is nobody in particular outside")
	}
	why := "users inside are the node's users of the same number"
	if v.asRoot() && v.runtimeClass() == "" { // no pod can hide more of /proc than the container runtime does
		why += ": root reads what the kernel tells only the node's root, such as /proc/kpageflags"
	}
	return backend.Control{Name: "user-namespace", Why: why,
		Fix: "set hostUsers: false in the pod template, where the nodes can map users"}
}

func (v view) abandoned() backend.Control {
	for _, o := range v.pod.OwnerReferences {
		if o.Kind == "Job" {
			return on("abandoned", "owner "+o.Name, "the cluster removes the pod when the process that opened it is gone; the agent in it ends before")
		}
	}
	return backend.Control{Name: "abandoned", Why: "the pod has no owner that the cluster would remove it with; only the agent in it ends by itself",
		Fix: "let the backend create and patch jobs, or run `llmsandbox gc --backend kubernetes` regularly"}
}

// pids reports the limit of processes, which Kubernetes has none of for one pod: the
// agent has the kernel count the processes of the user that only this pod is.
func (v view) pids(asked int64) backend.Control {
	const name, by, fix = "pids", "RLIMIT_NPROC", "have the nodes limit the processes of each pod (podPidsLimit of the kubelet)"
	switch class := v.runtimeClass(); {
	case asked <= 0:
		return backend.Control{Name: name, Why: backend.NotAsked}
	case !v.nproc():
		return backend.Control{Name: name, Why: "Kubernetes has no such limit for one pod", Fix: fix}
	case class != "":
		return backend.Control{Name: name, Why: fmt.Sprintf("Kubernetes has no such limit for one pod, and the kernel of runtime class %s need not hold one of a user's processes", class), Fix: fix}
	case v.root():
		return backend.Control{Name: name, Why: "Kubernetes has no such limit for one pod, and the kernel holds root to none", Fix: "leave the user to the sandbox"}
	case !v.ownUser() && v.sharesUsers():
		return backend.Control{Name: name, By: by, Why: "it is of all processes of that user on the node, not of this sandbox",
			Fix: "leave the user to the sandbox, and mount volumes read-only"}
	}
	return on(name, by, "of a user that only this sandbox is")
}

// nproc reports whether the agent was given a limit of processes.
func (v view) nproc() bool {
	for i, a := range v.container.Args {
		if a == "--rlimit" && i+1 < len(v.container.Args) && strings.HasPrefix(v.container.Args[i+1], "nproc=") {
			return true
		}
	}
	return false
}

// ownUser reports whether code runs as the user that was drawn for this pod.
func (v view) ownUser() bool {
	uid := v.user()
	return uid != nil && v.pod.Annotations[AnnotationUser] == strconv.FormatInt(*uid, 10)
}

// sharesUsers reports whether users inside are those of the node.
func (v view) sharesUsers() bool {
	return v.pod.Spec.HostUsers == nil || *v.pod.Spec.HostUsers
}

// disk reports the limit of what may be written.
func (v view) disk(asked int64) backend.Control {
	for _, name := range []string{VolumeWorkdir, VolumeTemp} {
		i := slices.IndexFunc(v.pod.Spec.Volumes, func(x corev1.Volume) bool { return x.Name == name })
		if i >= 0 && v.pod.Spec.Volumes[i].EmptyDir != nil && v.pod.Spec.Volumes[i].EmptyDir.SizeLimit != nil {
			continue
		}
		if asked <= 0 {
			return backend.Control{Name: "disk", Why: backend.NotAsked}
		}
		return backend.Control{Name: "disk", Why: "the volume " + name + " has no size", Fix: "leave the volume as it was"}
	}
	switch {
	case v.writableRoot():
		return backend.Control{Name: "disk", By: "tmpfs, eviction", Why: "of the root file system it holds by eviction only: the node ends the pod some time after more was written",
			Fix: "leave out WritableRoot (--writable-root) and, in the pod template, readOnlyRootFilesystem: false"}
	case v.asRoot():
		return backend.Control{Name: "disk", By: "tmpfs", Why: "root can write to files on the node's disk that belong to the container, such as the one for its last message, and nothing limits that one",
			Fix: "leave out User (--user)"}
	}
	return on("disk", "tmpfs", v.workdir()+" and "+TempDir+" each; what they hold counts as memory")
}
