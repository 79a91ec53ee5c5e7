package agentproto

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Message is one of the request or reply types of this package, as a pointer.
type Message interface {
	// code names the fields in their order on the wire.
	code(*coder)
}

// Marshal encodes a message.
func Marshal(m Message) []byte { return appendMessage(nil, m) }

func appendMessage(b []byte, m Message) []byte {
	c := coder{b: b}
	m.code(&c)
	return c.b
}

// Unmarshal decodes what [Marshal] encoded into m, which should be zero. Bytes
// after the last known field are ignored, so that fields can be added; anything
// else that is not exactly right is a *[ProtocolError]. Byte slices in m may
// alias b.
func Unmarshal(b []byte, m Message) error {
	c := coder{b: b, decoding: true}
	m.code(&c)
	if c.err != nil {
		return protocolErrorf("%T: %v", m, c.err)
	}
	return nil
}

// maxList bounds the elements of any list in a message, so that a small message
// cannot make its receiver allocate a large one.
const maxList = 1 << 17

// A coder appends fields to b or, when it decodes, takes them off the front of b. After
// the first error a field is decoded as zero, so that only the end need look at err.
type coder struct {
	b        []byte
	decoding bool
	err      error
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.b = nil
}

// fields encodes or decodes fields, of which it gets pointers.
func (c *coder) fields(fields ...any) {
	for _, f := range fields {
		switch v := f.(type) {
		case *uint64:
			number(c, v)
		case *uint32:
			number(c, v)
		case *uint16:
			number(c, v)
		case *uint8:
			number(c, v)
		case *int64:
			c.signed(v)
		case *bool:
			c.bool(v)
		case *string:
			text(c, v)
		case *[]byte:
			text(c, v)
		case *[]string:
			list(c, v, 1, text)
		default:
			panic(fmt.Sprintf("agentproto: a field of type %T", f))
		}
	}
}

// uint decodes a number of at most limit.
func (c *coder) uint(limit uint64) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.fail("ends in the middle of a number")
		return 0
	case n < 0 || v > limit:
		c.fail("a number is larger than %d", limit)
		return 0
	}
	c.b = c.b[n:]
	return v
}

func number[T uint8 | uint16 | uint32 | uint64](c *coder, v *T) {
	if c.decoding {
		*v = T(c.uint(uint64(^T(0))))
	} else {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
	}
}

func (c *coder) bool(v *bool) {
	switch {
	case c.decoding:
		*v = c.uint(1) == 1
	case *v:
		c.b = append(c.b, 1)
	default:
		c.b = append(c.b, 0)
	}
}

func (c *coder) signed(v *int64) {
	if !c.decoding {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	*v = 0
	if c.err != nil {
		return
	}
	decoded, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail("damaged signed number")
		return
	}
	*v, c.b = decoded, c.b[n:]
}

// text codes a string, or bytes, which are then a part of the input.
func text[T string | []byte](c *coder, v *T) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
		c.b = append(c.b, *v...)
		return
	}
	var none T
	*v = none
	n := c.uint(math.MaxUint64)
	if n > uint64(len(c.b)) {
		c.fail("a string of %d bytes in the %d that are left", n, len(c.b))
		return
	}
	if n > 0 {
		*v = T(c.b[:n:n])
		c.b = c.b[n:]
	}
}

// list codes a list whose elements take at least size bytes each. No more is allocated
// than can follow.
func list[T any](c *coder, v *[]T, size int, element func(*coder, *T)) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
		for i := range *v {
			element(c, &(*v)[i])
		}
		return
	}
	*v = nil
	n := c.uint(math.MaxUint64)
	if n > maxList || n > uint64(len(c.b)/size) {
		c.fail("a list of %d elements in the %d bytes that are left", n, len(c.b))
		return
	}
	if n == 0 {
		return
	}
	all := make([]T, n)
	for i := range all {
		if element(c, &all[i]); c.err != nil {
			return
		}
	}
	*v = all
}

func (*Empty) code(*coder) {}

func (m *StartRequest) code(c *coder) {
	c.fields(&m.Argv, &m.Env, &m.Dir, &m.User, &m.Tag, &m.Stdin, &m.Merge)
	terminal := m.PTY != nil
	if c.bool(&terminal); terminal {
		if c.decoding {
			m.PTY = new(WinSize)
		}
		m.PTY.code(c)
	}
	c.fields(&m.Control, &m.KeepChildren, (*uint8)(&m.Rest), &m.TimeoutMillis, &m.OutputLimit)
	list(c, &m.Rlimits, 2, func(c *coder, r *Rlimit) { c.fields(&r.Resource, &r.Value) })
	list(c, &m.Files, 3, func(c *coder, f *InlineFile) { c.fields(&f.Path, &f.Mode, &f.Data) })
	c.fields(&m.RemoveAfter)
}

func (m *ResizeRequest) code(c *coder) {
	c.fields(&m.ID)
	m.Size.code(c)
}

func (m *ProcessList) code(c *coder) {
	list(c, &m.Processes, 13, func(c *coder, p *ProcessInfo) { p.code(c) })
}

func (m *FileList) code(c *coder) {
	list(c, &m.Files, 8, func(c *coder, f *FileInfo) { f.code(c) })
	c.fields(&m.Truncated)
}

func (m *Found) code(c *coder) {
	list(c, &m.Files, 5, func(c *coder, f *FoundFile) { f.code(c) })
	c.fields(&m.Truncated, &m.Unmarked, &m.NowNanos, &m.Discarded)
}

func (m *Hello) code(c *coder) {
	c.fields(&m.Version, &m.Capabilities, &m.Arch, &m.AgentUID, &m.CodeUID, &m.CodeGID, &m.Instance)
}
func (m *WinSize) code(c *coder) { c.fields(&m.Rows, &m.Cols) }
func (m *Started) code(c *coder) {
	c.fields(&m.ID, &m.PID, &m.OutOffset, &m.ErrOffset, &m.ControlOffset)
}

func (m *Exit) code(c *coder) {
	c.fields(&m.Known, &m.Code, &m.Signal, (*uint8)(&m.Reason), &m.CPUMicros, &m.PeakRSS, &m.WallMicros, &m.OutTotal, &m.ErrTotal, &m.OutCut, &m.ErrCut, &m.OOMKills, &m.OOMKnown)
}

func (m *AttachRequest) code(c *coder) { c.fields(&m.ID, &m.OutOffset, &m.ErrOffset, &m.ControlOffset) }

func (m *ProcessInfo) code(c *coder) {
	c.fields(&m.ID, &m.PID, &m.Tag, &m.Argv, &m.StartMillis, &m.Running, &m.Attached, &m.OutStart, &m.OutEnd, &m.ErrStart, &m.ErrEnd, &m.CPUMicros, &m.RSS)
}

func (m *ProcessCount) code(c *coder)    { c.fields(&m.Processes) }
func (m *SignalRequest) code(c *coder)   { c.fields(&m.ID, &m.Signal, &m.Group) }
func (m *KillRequest) code(c *coder)     { c.fields(&m.ID, &m.AfterMillis) }
func (m *DeadlineRequest) code(c *coder) { c.fields(&m.Set, &m.Millis) }
func (m *Deadline) code(c *coder)        { c.fields(&m.Millis, &m.Paused) }
func (m *FileInfo) code(c *coder) {
	c.fields(&m.Name, (*uint8)(&m.Type), &m.Mode, &m.Size, &m.MTimeMicros, &m.UID, &m.GID, &m.Link)
}
func (m *PathRequest) code(c *coder)   { c.fields(&m.Path) }
func (m *MkdirRequest) code(c *coder)  { c.fields(&m.Path, &m.Mode, &m.Parents) }
func (m *RemoveRequest) code(c *coder) { c.fields(&m.Path, &m.Recursive, &m.Missing) }
func (m *RenameRequest) code(c *coder) { c.fields(&m.From, &m.To) }
func (m *ChmodRequest) code(c *coder)  { c.fields(&m.Path, &m.Mode) }
func (m *ReadRequest) code(c *coder)   { c.fields(&m.Path, &m.Offset, &m.Length, &m.Below) }
func (m *WriteRequest) code(c *coder) {
	c.fields(&m.Path, &m.Offset, &m.Mode, &m.Create, &m.Exclusive, &m.Truncate, &m.Parents)
}
func (m *TarOutRequest) code(c *coder) { c.fields(&m.Path, &m.Prefix, &m.Links) }
func (m *TarInRequest) code(c *coder)  { c.fields(&m.Dir, &m.MaxBytes, &m.MaxFiles, &m.Links) }
func (m *TarResult) code(c *coder)     { c.fields(&m.Files, &m.Bytes, &m.Skipped) }
func (m *WatchRequest) code(c *coder)  { c.fields(&m.Path, &m.Recursive) }
func (m *WatchEvent) code(c *coder)    { c.fields((*uint8)(&m.Op), &m.Path, &m.Dir) }
func (m *DialRequest) code(c *coder)   { c.fields(&m.Port) }
func (m *ListenRequest) code(c *coder) { c.fields(&m.Port) }
func (m *Listening) code(c *coder)     { c.fields(&m.Port) }
func (m *Connection) code(c *coder)    { c.fields(&m.ID) }
func (m *AcceptRequest) code(c *coder) { c.fields(&m.ID) }
func (m *FindRequest) code(c *coder) {
	c.fields(&m.Folders, &m.Marker, &m.SinceNanos, &m.MaxFiles, &m.Discard)
}
func (m *FoundFile) code(c *coder) { c.fields(&m.Folder, &m.Path, &m.Size, &m.CTimeNanos, &m.Inode) }
func (m *Error) code(c *coder)     { c.fields((*uint8)(&m.Code), &m.Msg) }
