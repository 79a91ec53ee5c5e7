// Package podspec decides what a sandbox's pod looks like. It is pure: it asks no
// cluster, and the same request always gives the same pod.
//
// The pod starts from a safe default: an unprivileged user, a read-only root, no
// capability, no token of the cluster, no way out, and every limit set. The caller's
// template is laid over it by a strategic merge, as kubectl does it. What would break
// the sandbox is refused. What loosens it is allowed, since the caller asked for it by
// name, and [Controls] reports it.
//
// # The agent
//
// The guest agent comes into a volume of its own, by an init container, before the
// sandbox's container starts. The latter mounts that volume read-only, so that code can
// never replace the agent that it is held by. See [InitContainer] for what is said with
// the init container.
package podspec

import (
	"crypto/rand"
	"math/big"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// The parts of a sandbox's pod.
const (
	// Container is the container that the code runs in.
	Container = "sandbox"
	// InitContainer is the container that brings the agent. With Request.AgentImage it
	// copies the agent of that image, and has a stdin only when there are layers: one tar
	// with what is in layer i below "<i>/".
	//
	// Without, it is a shell of the sandbox's own image, fed through an attach:
	//
	//	client: "\n"                         nothing is said before the client listens
	//	shell:  the output of `uname -m`     which agent it takes; both again until it is heard
	//	client: "<S> <A>\n"                  sizes in bytes, decimal
	//	client: S bytes of system call filter, A bytes of agent
	//	client: the tar as above, when there are layers
	//
	// It ends with 0 when all has come as announced.
	InitContainer = "agent"

	AgentDir  = "/.llmsandbox"        // where the agent's volume is mounted
	AgentFile = AgentDir + "/agent"   // the agent itself
	Filter    = AgentDir + "/seccomp" // its system call filter
	LayerDir  = AgentDir + "/layers"  // layer i is the directory i below
	Workdir   = "/sandbox"
	TempDir   = "/tmp"
	shmDir    = "/dev/shm"

	// closedFile is where the cluster mounts the file for a container's termination message. It is
	// on the node's disk, everybody may write to it, and nothing limits or counts that;
	// and a container cannot be without. In a directory of mode 0, which is mounted
	// read-only, code does not reach it.
	closedFile = AgentDir + "/closed/log"

	// EnvToken is the variable with what a connection to the agent must show. Only the
	// agent's own environment has it; code never sees it.
	EnvToken = agenthost.EnvToken
)

// The pod's volumes. Sidecars may mount VolumeWorkdir and VolumeTemp.
const (
	volumePrefix  = "llmsandbox-"
	VolumeAgent   = volumePrefix + "agent"
	VolumeWorkdir = volumePrefix + "workdir"
	VolumeTemp    = volumePrefix + "tmp"
	volumeShm     = volumePrefix + "shm"
	volumeLayers  = volumePrefix + "layers" // only where there are layers
)

// Labels and annotations of everything that is made in a cluster. What is secret is not
// in them.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	domain         = "llmsandbox.dev/"
	LabelRole      = domain + "role"    // RoleSandbox, RoleProbe or RoleVolume
	LabelSandbox   = domain + "sandbox" // the sandbox's id
	LabelOwner     = domain + "owner"   // the id of the backend that made it
	LabelNetwork   = domain + "network" // NetworkIsolated: the NetworkPolicy selects it

	AnnotationInfo  = domain + "info"  // JSON of backend.Info, or of backend.Volume
	AnnotationGuest = domain + "guest" // JSON of backend.Guest
	// AnnotationUser is the user id that was drawn for this pod alone, or for a volume.
	AnnotationUser = domain + "user"

	// annotationContainer is what kubectl takes when no container is named.
	annotationContainer = "kubectl.kubernetes.io/default-container"
)

// Values of the labels.
const (
	ManagedBy       = "llmsandbox"
	NameSandbox     = "llmsandbox-sandbox"
	RoleSandbox     = "sandbox"
	RoleProbe       = "probe"
	NetworkIsolated = "isolated"
)

// ProbeLifetime is when the cluster ends a pod of a probe whose doctor has died. One that was
// made earlier has no owner.
const ProbeLifetime = 5 * time.Minute

// PodName is the name of a sandbox's pod.
func PodName(id string) string { return "llmsandbox-" + id }

// LayerPath is where layer i of a sandbox is, for those that the agent seeds.
func LayerPath(i int) string { return LayerDir + "/" + strconv.Itoa(i) }

// A Request is all that a sandbox's pod follows from.
//
// What is said here and in the template too must be the same twice: the image, the pull
// policy, the runtime class, the service account, a node selector's value, and the limits
// in Spec.Limits.Required.
type Request struct {
	// Spec is the sandbox as asked for. Its ID names the pod, its Layers are mounted
	// where they are not writable, and its Volumes have claims of VolumeClaim.
	Spec backend.Spec
	// Image is the sandbox's image. It may be empty where the template names one.
	Image       string
	PullPolicy  corev1.PullPolicy // empty: the cluster decides
	PullSecrets []string          // names of secrets in the pod's namespace
	// AgentImage is the image that the agent is copied from. When empty the agent comes
	// through the init container's stdin.
	AgentImage string
	// Args are the agent's arguments after "serve".
	Args []string
	// Token is what a connection to the agent must show.
	Token string
	// Owner is the id of the backend that makes the pod.
	Owner string
	// OwnerRef, when set, is the object with which the pod goes.
	OwnerRef *metav1.OwnerReference
	// Annotations are added to the pod.
	Annotations    map[string]string
	RuntimeClass   string
	ServiceAccount string
	NodeSelector   map[string]string
	// UID is the user and group that the code runs as, of which no other pod should be:
	// see NewUID; or that of a volume, see OwnsFiles. When 0 the image or the cluster decides, root excluded, as clusters
	// that give each namespace users of its own want it. The template may name another.
	UID int64
	// LayerBytes is what Spec.Layers take on the node's disk, in bytes.
	LayerBytes int64
	// Template is laid over the rest. It is not changed.
	Template *corev1.PodTemplateSpec
}

// The user ids that NewUID draws from: above those of people and services, and within
// what every kernel and runtime takes.
const (
	firstUID = 100_000
	lastUID  = 1<<31 - 2
)

// NewUID draws a user id for one sandbox. The kernel counts processes by user, so that a
// limit of them holds for one sandbox only where no other process on the node has that user.
func NewUID() int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(lastUID-firstUID+1))
	if err != nil {
		panic("podspec: " + err.Error()) // crypto/rand never fails
	}
	return firstUID + n.Int64()
}

// ParseUID reads one that NewUID has drawn.
func ParseUID(text string) (uid int64, ok bool) {
	uid, err := strconv.ParseInt(text, 10, 64)
	return uid, err == nil && uid >= firstUID && uid <= lastUID
}
