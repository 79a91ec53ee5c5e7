package podspec

import (
	"crypto/rand"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Request is all that a sandbox's pod follows from.
//
// What is said here and in the template too must be the same twice: the image, the pull
// policy, the runtime class, the service account, a node selector's value, and the limits
// in Spec.Limits.Required.
type Request struct {
	// Spec is the sandbox as asked for. Its ID names the pod, and its Layers are mounted
	// where they are not writable.
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
	// see NewUID. When 0 the image or the cluster decides, root excluded, as clusters
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
