package backend

// A Mount is a directory or file of the host that appears inside the sandbox. Its Source is
// resolved once, when the sandbox is created.
type Mount struct {
	Source string    `json:"source"` // absolute path on the host
	Target string    `json:"target"` // absolute path inside
	Mode   MountMode `json:"mode"`   // empty means MountReadOnly
}

// MountMode is what code may do with a Mount. There is no mode in which it changes the host's files.
type MountMode string

// The modes of a Mount.
const (
	// MountReadOnly: code can read. It sees what changes on the host.
	MountReadOnly MountMode = "ro"
	// MountCopyOnWrite: code can write to a directory. What it writes goes to the sandbox's disk,
	// counts against the disk limit, and never reaches the host.
	MountCopyOnWrite MountMode = "cow"
)
