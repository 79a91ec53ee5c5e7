package podspec

import (
	"strconv"
	"time"

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
	LabelRole      = domain + "role"    // RoleSandbox or RoleProbe
	LabelSandbox   = domain + "sandbox" // the sandbox's id
	LabelOwner     = domain + "owner"   // the id of the backend that made it
	LabelNetwork   = domain + "network" // NetworkIsolated: the NetworkPolicy selects it

	AnnotationInfo  = domain + "info"  // JSON of backend.Info
	AnnotationGuest = domain + "guest" // JSON of backend.Guest
	// annotationUser is the user id that was drawn for this pod alone.
	annotationUser = domain + "user"

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
