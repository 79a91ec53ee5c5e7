package agentproto

import "encoding/binary"

// FindRequest looks for regular files below Folders that were made or changed since a
// moment: since SinceNanos when that is not 0, or else since Marker was last changed. No
// symbolic link is followed, and a directory that is missing holds nothing.
type FindRequest struct {
	Folders []string
	Marker  string
	// SinceNanos is a moment of the sandbox's clock, in nanoseconds since 1970.
	SinceNanos int64
	// MaxFiles bounds the answer; 0 means the most that the agent gives.
	MaxFiles uint32
	// Discard is removed, with all below it, when there are no such files below it.
	Discard string
}

// FoundFile is one of them.
type FoundFile struct {
	Folder     uint32 // index in FindRequest.Folders
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

func (m *FindRequest) append(b []byte) []byte {
	b = appendStrings(b, m.Folders)
	b = appendText(b, m.Marker)
	b = binary.AppendVarint(b, m.SinceNanos)
	b = appendUint(b, m.MaxFiles)
	return appendText(b, m.Discard)
}

func (m *FindRequest) parse(d *decoder) {
	m.Folders = d.strings()
	m.Marker = d.string()
	m.SinceNanos = d.int64()
	m.MaxFiles = d.uint32()
	m.Discard = d.string()
}

func (m *FoundFile) append(b []byte) []byte {
	b = appendUint(b, m.Folder)
	b = appendText(b, m.Path)
	b = appendUint(b, m.Size)
	b = binary.AppendVarint(b, m.CTimeNanos)
	return appendUint(b, m.Inode)
}

func (m *FoundFile) parse(d *decoder) {
	m.Folder = d.uint32()
	m.Path = d.string()
	m.Size = d.uint64()
	m.CTimeNanos = d.int64()
	m.Inode = d.uint64()
}

func (m *Found) append(b []byte) []byte {
	b = appendUint(b, uint64(len(m.Files)))
	for i := range m.Files {
		b = m.Files[i].append(b)
	}
	b = appendBool(b, m.Truncated)
	b = appendBool(b, m.Unmarked)
	b = binary.AppendVarint(b, m.NowNanos)
	return appendBool(b, m.Discarded)
}

func (m *Found) parse(d *decoder) {
	m.Files = parseList(d, 5, func(d *decoder) (f FoundFile) {
		f.parse(d)
		return f
	})
	m.Truncated = d.bool()
	m.Unmarked = d.bool()
	m.NowNanos = d.int64()
	m.Discarded = d.bool()
}
