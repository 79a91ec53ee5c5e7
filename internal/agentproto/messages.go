package agentproto

import "math"

// Version is the protocol's version. Both ends must speak the same one; a
// difference fails the handshake with a [VersionError].
const Version = 6

// Limits both ends hold the other to. A frame or message over its limit is a
// protocol error that ends the stream.
const (
	// MaxFrame is the largest frame payload, in bytes.
	MaxFrame = 64 << 10
	// MaxMessage is the largest encoded request or reply, in bytes. Bulk data
	// never travels in messages but on a call's channels, except for MethodLogs.
	MaxMessage = 16 << 20
	// Window is how many bytes of one channel may be unacknowledged at once.
	Window = 512 << 10
	// MaxKept is how many bytes of a process's stdout, and of its stderr, an agent keeps at most.
	MaxKept = Window + 512<<10
	// KeptLogs is how many of the last bytes of each it keeps at least, although they were
	// consumed.
	KeptLogs = 64 << 10
	// MaxLogs is how many bytes of output one Output carries at most.
	MaxLogs = 32 << 10
	// MaxSockets is how many bytes of each table of sockets an agent sends at most.
	MaxSockets = 1 << 20
)

// A Method names what a call asks of the agent.
type Method uint8

// The methods. Each one's request and replies are the types of the same name.
const (
	MethodStart        Method = iota + 1 // StartRequest; replies Started, then Exit (final)
	MethodAttach                         // AttachRequest; replies Started, then Exit (final)
	MethodProcesses                      // Empty; reply ProcessList
	MethodSignal                         // SignalRequest; reply Empty
	MethodKill                           // KillRequest; reply Empty, once nothing of the process is left
	MethodResize                         // ResizeRequest; reply Empty
	MethodStat                           // PathRequest; reply FileInfo
	MethodList                           // PathRequest; reply FileList
	MethodMkdir                          // MkdirRequest; reply Empty
	MethodRemove                         // RemoveRequest; reply Empty
	MethodRename                         // RenameRequest; reply Empty
	MethodChmod                          // ChmodRequest; reply Empty
	MethodRead                           // ReadRequest; reply FileInfo, bytes on ChanOut, then Empty (final)
	MethodWrite                          // WriteRequest; bytes on ChanIn until its end, then FileInfo (final)
	MethodTarOut                         // TarOutRequest; a tar stream on ChanOut, then TarResult (final)
	MethodTarIn                          // TarInRequest; a tar stream on ChanIn, then TarResult (final)
	MethodWatch                          // WatchRequest; reply Empty once watching, then WatchEvent until cancelled
	MethodDial                           // DialRequest; reply Empty once connected; bytes on ChanIn and ChanOut; Empty (final)
	MethodShutdown                       // Empty; reply Empty, then the agent kills everything and exits
	MethodListen                         // ListenRequest; reply Listening, then Connection for each one, until cancelled
	MethodAccept                         // AcceptRequest; reply Empty; bytes on ChanIn and ChanOut; Empty (final)
	MethodFind                           // FindRequest; reply Found
	MethodCount                          // Empty; reply ProcessCount
	MethodDeadline                       // DeadlineRequest; reply Deadline
	MethodPauseTimers                    // Empty; reply Deadline
	MethodResumeTimers                   // Empty; reply Deadline
	MethodBusy                           // Empty; no reply, until it is cancelled
	MethodLogs                           // LogsRequest; replies Output, the final one without Data
	MethodTarLayer                       // Empty; what was written to the root as a tar stream on ChanOut, then TarResult (final)
	MethodTarRoot                        // TarRootRequest; the root file system as a tar stream on ChanOut, then TarResult (final)
	MethodSockets                        // Empty; the kernel's tables of TCP sockets on ChanOut, IPv4 first, then Empty (final)
)

// A Channel is one direction of bulk bytes of a call.
type Channel uint8

// The channels. ChanIn flows to the agent, the others from it.
const (
	ChanIn  Channel = 0 // stdin, file content, a dialled connection's sent bytes
	ChanOut Channel = 1 // stdout (and stderr when merged, and a PTY), file content, received bytes
	ChanErr Channel = 2 // stderr
	// ChanControl is what a process with StartRequest.Control writes to descriptor 4.
	ChanControl Channel = 3

	lastChannel = ChanControl
)

// An ErrorCode is the kind of failure the agent reports.
type ErrorCode uint8

// The error codes.
const (
	CodeInternal      ErrorCode = iota + 1 // the agent failed
	CodeBadRequest                         // the request makes no sense
	CodeUnsupported                        // the agent does not know or cannot do this here
	CodeNotFound                           // no such file, process, program or port
	CodeExists                             // something is there already
	CodePermission                         // not allowed
	CodeNotDir                             // a directory was needed
	CodeIsDir                              // a directory is in the way
	CodeNotEmpty                           // the directory is not empty
	CodeNoSpace                            // the disk limit is reached
	CodeNotExecutable                      // the program cannot be executed (ENOEXEC, EACCES)
	CodeUnsafe                             // a path, link or archive member that must not be followed
	CodeLost                               // what was asked for is no longer known
	CodeTooLarge                           // a limit of the protocol is exceeded
	CodeCancelled                          // the call was cancelled
	CodeBusy                               // a limit on how much goes on at once is reached (EAGAIN), or a port is taken
	CodeWorkdir                            // a process cannot start in its working directory
)

// Hello is the first frame of each end.
type Hello struct {
	Version      uint32
	Capabilities []string // e.g. "pty", "watch", "landlock"; unknown ones are ignored
	Arch         string   // GOARCH of the agent
	AgentUID     uint32   // uid the agent runs as, in its own namespace
	CodeUID      uint32   // uid a started process gets by default
	CodeGID      uint32
	Instance     uint64 // random, one per agent process: distinguishes a restarted agent from the same one
}

// Empty is a message without content.
type Empty struct{}

// StartRequest starts a process. On channel ChanIn the caller feeds its stdin,
// ChanOut and ChanErr carry its output.
type StartRequest struct {
	// Argv is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env.
	Argv []string
	// Env is the whole environment, as NAME=VALUE.
	Env []string
	// Dir is the working directory; empty means the agent's default.
	Dir string
	// User is "" for the agent's default, a number, a name of /etc/passwd, or
	// user:group.
	User string
	// Tag is the caller's own name for the process, returned by MethodProcesses.
	Tag string
	// Stdin reports whether the caller will write to ChanIn and end it. Without it
	// the process reads end-of-file at once.
	Stdin bool
	// Merge sends stderr down ChanOut, in order with stdout.
	Merge bool
	// PTY, when set, gives the process a terminal; Stdin and Merge are implied.
	PTY *WinSize
	// Control gives the process two further pipes: descriptor 3, which it reads ChanIn
	// from, and descriptor 4, which ChanControl carries and OutputLimit does not count.
	// Its stdin is empty then. It goes neither with Stdin nor with PTY.
	Control bool
	// Forks has the process fork others: descriptor 3 is a socket, on which it is asked for
	// them, and ChanIn leads nowhere. It needs Control. What it has forked lives on when it ends.
	Forks bool
	// Enters has the process fork others into other sandboxes: descriptor 3 is a socket of the sandbox's owner, and
	// ChanIn leads nowhere. It needs Control, and a sandbox that was made for it.
	Enters bool
	// From is the id of a process with Forks that forks this one, in place of Argv, Env, Dir, User
	// and Rlimits, with Control and without KeepChildren. One at a time can be had: otherwise CodeBusy. Where there
	// is no such process any more, it is CodeNotFound.
	From uint64
	// Feed is what a process with From reads on descriptor 3, to its end, in place of what comes on ChanIn: it may then have Stdin.
	Feed []byte
	// KeepChildren leaves what the process started running when it ends;
	// otherwise everything it started is killed.
	KeepChildren bool
	// Rest tells when the process counts as one that waits for work, so that it alone does
	// not keep the sandbox from being idle.
	Rest Rest
	// TimeoutMillis kills the process and all it started when it has run for so
	// long; 0 means no timeout. The agent enforces it even if the caller has ended.
	TimeoutMillis uint64
	// OutputLimit kills the process when stdout and stderr together exceed so
	// many bytes; 0 means no limit. What is within the limit is delivered.
	OutputLimit uint64
	// Rlimits are set before the program is executed.
	Rlimits []Rlimit
	// Files are written, private to the default user, before the process starts.
	// Missing parent directories are made. A path that ends in a slash is a directory; that it
	// cannot be made is no failure.
	Files []InlineFile
	// RemoveAfter are paths removed, with all below them, once the process and
	// all it started have ended.
	RemoveAfter []string
}

// A Rest is when a running process waits for work.
type Rest uint8

// The rests.
const (
	RestNever    Rest = iota // it works as long as it runs
	RestUntilFed             // until it is sent something on ChanIn
	RestAlways               // a client that has it work keeps a call of MethodBusy open meanwhile
)

// InlineFile is a small file that travels in a StartRequest.
type InlineFile struct {
	Path string
	Mode uint32 // permission bits
	Data []byte
}

// WinSize is a terminal's size in characters.
type WinSize struct{ Rows, Cols uint16 }

// Rlimit is one resource limit; Resource is Linux's RLIMIT_ number, and both
// soft and hard limit become Value.
type Rlimit struct {
	Resource uint32
	Value    uint64
}

// Started reports whether a process runs.
type Started struct {
	ID        uint64 // the agent's own number of the process, never used twice
	PID       uint32 // its pid inside the sandbox
	OutOffset uint64 // offset of the first byte that ChanOut will carry
	ErrOffset uint64 // and of ChanErr
	// ControlOffset is that of ChanControl.
	ControlOffset uint64
}

// A KillReason is why the agent killed a process.
type KillReason uint8

// The reasons.
const (
	NotKilled         KillReason = iota // the agent did not kill it
	KilledByRequest                     // MethodKill, or the end of the agent
	KilledTimeout                       // StartRequest.TimeoutMillis
	KilledOutputLimit                   // StartRequest.OutputLimit
	KilledDiskLimit                     // the files of the sandbox
)

// Exit is the end of a process: an observation, never a guess.
type Exit struct {
	// Known reports whether the end was observed. Without it neither Code nor Signal
	// means anything and the outcome is lost.
	Known bool
	// Code is the exit code, when Signal is 0.
	Code uint32
	// Signal is the signal that ended the process, or 0.
	Signal uint32
	// Reason is why the agent killed it, if it did.
	Reason KillReason
	// CPUMicros is user plus system time of the process and the children it
	// waited for, in microseconds.
	CPUMicros uint64
	// PeakRSS is the largest resident size of any one of them, in bytes.
	PeakRSS uint64
	// WallMicros is the time from start to end, in microseconds.
	WallMicros uint64
	// OutTotal and ErrTotal are how many bytes each channel carries.
	OutTotal, ErrTotal uint64
	// OutCut and ErrCut tell that more was written to the channel and dropped
	// because of StartRequest.OutputLimit.
	OutCut, ErrCut bool
	// OOMKills is how many processes were killed for memory, by the kernel in the sandbox's
	// own memory cgroup or by a watch of the agent, between the start and the end of this one. It means
	// something only when OOMKnown is set: not every agent can see that group.
	OOMKills uint64
	OOMKnown bool
}

// AttachRequest takes over a running (or ended and not yet collected) process,
// whose output resumes at the given offsets. It takes the place of the call that
// was attached before. An offset that is no longer in the agent's buffer fails
// with CodeLost; FirstKept is the first one that is still there, and Started tells which
// that is.
type AttachRequest struct {
	ID                                  uint64
	OutOffset, ErrOffset, ControlOffset uint64
}

// FirstKept is an offset of an AttachRequest.
const FirstKept = math.MaxUint64

// LogsRequest reads a process's stdout and stderr from two offsets on, as far as they are kept,
// up to what there is now, or with Follow until the process has ended. It takes nothing from the
// call that is attached to the process, and the process does not wait for it: a client that
// reads too slowly finds a gap. An offset beyond the end fails with CodeBadRequest.
type LogsRequest struct {
	ID                   uint64
	OutOffset, ErrOffset uint64
	Follow               bool
}

// Output is a piece of what a process wrote.
type Output struct {
	Err    bool   // to stderr
	Offset uint64 // of the first byte of Data; what lies between it and the end of the piece before is gone
	Data   []byte
}

// ProcessInfo is one process that the agent started.
type ProcessInfo struct {
	ID          uint64
	PID         uint32
	Tag         string
	Argv        []string
	StartMillis uint64 // wall clock, milliseconds since 1970
	Running     bool   // false: ended, its Exit not yet collected
	Attached    bool
	Resting     bool // it runs, and waits for work: see [StartRequest]
	// OutStart and OutEnd bound what the buffer of ChanOut still holds.
	OutStart, OutEnd uint64
	ErrStart, ErrEnd uint64
	CPUMicros        uint64 // so far, of the process tree; 0 of one that StartRequest.Forks
	RSS              uint64 // now, in bytes, of the process tree; 0 as well
}

// ProcessList answers MethodProcesses.
type ProcessList struct{ Processes []ProcessInfo }

// ProcessCount is how many processes there are beside the agent, no matter what has started them;
// those whose parent is outside of the agent's pid namespace do not count.
type ProcessCount struct{ Processes uint64 }

// SignalRequest sends a signal to the process itself, or to its process group.
type SignalRequest struct {
	ID     uint64
	Signal uint32
	Group  bool
}

// KillRequest kills a process and everything it started: at once, or as its timeout after
// AfterMillis from now, which takes the place of the one it has. The reply to that does not
// wait for it.
type KillRequest struct {
	ID          uint64
	AfterMillis uint64
}

// ResizeRequest changes a PTY's size.
type ResizeRequest struct {
	ID   uint64
	Size WinSize
}

// A FileType is what kind of file a FileInfo describes.
type FileType uint8

// The file types.
const (
	TypeRegular FileType = iota + 1
	TypeDir
	TypeSymlink
	TypeOther // a device, FIFO or socket
)

// FileInfo describes a file. Symbolic links are not followed.
type FileInfo struct {
	Name        string // base name
	Type        FileType
	Mode        uint32 // permission bits with setuid, setgid and sticky as in st_mode
	Size        uint64
	MTimeMicros int64
	UID, GID    uint32
	Link        string // target of a symbolic link
}

// PathRequest names a file.
type PathRequest struct{ Path string }

// FileList answers MethodList, sorted by name.
type FileList struct {
	Files     []FileInfo
	Truncated bool // more entries than the agent lists in one reply
}

// MkdirRequest makes a directory, with Parents also those above it.
type MkdirRequest struct {
	Path    string
	Mode    uint32
	Parents bool
}

// RemoveRequest removes a file or an empty directory, with Recursive a directory and
// all below it. With Missing it is no error that nothing is there.
type RemoveRequest struct {
	Path      string
	Recursive bool
	Missing   bool
}

// RenameRequest moves a file; an existing target is replaced as rename(2) does.
type RenameRequest struct{ From, To string }

// ChmodRequest sets permission bits.
type ChmodRequest struct {
	Path string
	Mode uint32
}

// ReadRequest reads a regular file from Offset, at most Length bytes (0: to its end).
type ReadRequest struct {
	Path   string
	Offset uint64
	Length uint64
	// Below, when set, is the directory that Path is relative to. No link on the way from
	// there is followed, nor is it left.
	Below string
}

// WriteRequest writes a regular file. Truncate empties it first; Create makes it
// with Mode when missing; Parents makes missing directories; Exclusive fails when it
// exists. Without Truncate, bytes go to Offset and the rest is kept.
type WriteRequest struct {
	Path      string
	Offset    uint64
	Mode      uint32
	Create    bool
	Exclusive bool
	Truncate  bool
	Parents   bool
}

// TarOutRequest sends Path, a file or a directory, as a tar stream whose members
// are named below Prefix (Prefix itself for a file).
type TarOutRequest struct {
	Path   string
	Prefix string
	Links  bool // symbolic links are members, instead of being left out
}

// TarInRequest unpacks a tar stream below Dir, which is made when missing.
type TarInRequest struct {
	Dir      string
	MaxBytes uint64 // 0: no limit but the disk's
	MaxFiles uint64 // 0: no limit but the disk's
	Links    bool   // symbolic links are made, instead of being left out
}

// TarRootRequest sends the root file system, without what is mounted in it, for a caller who
// knows what it was at first and looks for what differs. The members are as in any tar, with their
// owners, but for two kinds: a block device is a regular file that was not written to since the agent
// started, as its status changed last before that, with its size and without its contents; and a FIFO
// is a name that is there, of which and below which nothing more is told: something is mounted
// there, or it cannot be read, or is neither a file, a directory nor a link.
type TarRootRequest struct {
	All bool // the contents of all files
}

// TarResult reports what a tar stream held.
type TarResult struct {
	Files   uint64
	Bytes   uint64
	Skipped []string // members left out, each with its reason, at most 100
}

// WatchRequest watches a directory, with Recursive also those below it.
type WatchRequest struct {
	Path      string
	Recursive bool
}

// A WatchOp is what happened to a watched file.
type WatchOp uint8

// The operations.
const (
	OpCreate WatchOp = iota + 1
	OpWrite
	OpRemove
	OpRename
	OpChmod
	OpOverflow // events were lost: look at the directory again
)

// WatchEvent is one change.
type WatchEvent struct {
	Op   WatchOp
	Path string
	Dir  bool
}

// DialRequest connects to a TCP port on the sandbox's loopback.
type DialRequest struct{ Port uint16 }

// ListenRequest listens on a TCP port of the sandbox's loopback, 127.0.0.1. It takes
// the place of an earlier call that listens there, which ends with CodeBusy: that of a lost stream
// may not have ended yet. When the call ends the port is closed, and connections that were not accepted
// are closed; those that were stay open.
type ListenRequest struct{ Port uint16 } // 0: any free one

// Listening reports where the agent listens.
type Listening struct{ Port uint16 }

// Connection describes a connection that waits to be accepted.
type Connection struct{ ID uint64 } // never used twice

// AcceptRequest takes over a connection. One that is not accepted within half a minute
// is closed.
type AcceptRequest struct{ ID uint64 }

// DeadlineRequest asks when the agent ends by itself, or, with Set, sets that.
type DeadlineRequest struct {
	Set    bool
	Millis uint64 // wall clock, milliseconds since 1970; 0: never
}

// Deadline is when the agent ends by itself. It answers MethodPauseTimers and
// MethodResumeTimers, too. These stop and restart the clock of everything that the agent
// does when a time is over: the deadline, the grace time without a connection, the timeouts
// of processes, the idle timeout. Whoever freezes a sandbox pauses them before and resumes
// them after, on whatever stream: what was left of each is then left of it again, and the
// deadline has moved. While they are paused an agent lives without anybody.
type Deadline struct {
	Millis uint64 // as in DeadlineRequest; while paused, when it was before
	Paused bool
}

// FindRequest looks for regular files below Directories that were made or changed since a
// moment: since SinceNanos when that is not 0, or else since Marker was last changed. No
// symbolic link is followed, and a directory that is missing holds nothing.
type FindRequest struct {
	Directories []string
	Marker      string
	// SinceNanos is a moment of the sandbox's clock, in nanoseconds since 1970.
	SinceNanos int64
	// MaxFiles bounds the answer; 0 means the most that the agent gives.
	MaxFiles uint32
	// Discard is removed, with all below it, when there are no such files below it.
	Discard string
}

// FoundFile is one of them.
type FoundFile struct {
	Directory  uint32 // index in FindRequest.Directories
	Path       string // relative to the directory
	Size       uint64
	CTimeNanos int64 // when it was last changed in any way, which no program can set
	Inode      uint64
}

// Found answers MethodFind. Its files have no order.
type Found struct {
	Files []FoundFile
	// Truncated reports whether there may be more than the agent looks through or gives.
	Truncated bool
	// Unmarked reports whether Marker is not there, so that nothing was looked for.
	Unmarked bool
	// NowNanos is the sandbox's clock when the search began.
	NowNanos int64
	// Discarded reports whether Discard was removed.
	Discarded bool
}
