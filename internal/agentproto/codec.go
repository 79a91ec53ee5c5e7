package agentproto

import "github.com/llmsandbox/llmsandbox/internal/wire"

// A Message is one of the request or reply types of this package, as a pointer.
type Message = wire.Message

// Marshal encodes a message.
func Marshal(m Message) []byte { return wire.Append(nil, m) }

// Unmarshal decodes what [Marshal] encoded into m, which should be zero. Bytes
// after the last known field are ignored, so that fields can be added; anything
// else that is not exactly right is a *[ProtocolError]. Byte slices in m may
// alias b.
func Unmarshal(b []byte, m Message) error {
	if _, err := wire.Decode(b, m); err != nil {
		return protocolErrorf("%T: %v", m, err)
	}
	return nil
}

func (*Empty) Fields(*wire.Coder) {}

func (m *StartRequest) Fields(c *wire.Coder) {
	c.Fields(&m.Argv, &m.Env, &m.Dir, &m.User, &m.Tag, &m.Stdin, &m.Merge)
	terminal := m.PTY != nil
	if c.Fields(&terminal); terminal {
		if m.PTY == nil {
			m.PTY = new(WinSize)
		}
		m.PTY.Fields(c)
	}
	c.Fields(&m.Control, &m.Forks, &m.Enters, &m.From, &m.Feed, &m.KeepChildren, (*uint8)(&m.Rest), &m.TimeoutMillis, &m.OutputLimit)
	wire.List(c, &m.Rlimits, 2, func(c *wire.Coder, r *Rlimit) { c.Fields(&r.Resource, &r.Value) })
	wire.List(c, &m.Files, 3, func(c *wire.Coder, f *InlineFile) { c.Fields(&f.Path, &f.Mode, &f.Data) })
	c.Fields(&m.RemoveAfter)
}

func (m *ResizeRequest) Fields(c *wire.Coder) {
	c.Fields(&m.ID)
	m.Size.Fields(c)
}

func (m *ProcessList) Fields(c *wire.Coder) {
	wire.List(c, &m.Processes, 13, func(c *wire.Coder, p *ProcessInfo) { p.Fields(c) })
}

func (m *FileList) Fields(c *wire.Coder) {
	wire.List(c, &m.Files, 8, func(c *wire.Coder, f *FileInfo) { f.Fields(c) })
	c.Fields(&m.Truncated)
}

func (m *Found) Fields(c *wire.Coder) {
	wire.List(c, &m.Files, 5, func(c *wire.Coder, f *FoundFile) { f.Fields(c) })
	c.Fields(&m.Truncated, &m.Unmarked, &m.NowNanos, &m.Discarded)
}

func (m *Hello) Fields(c *wire.Coder) {
	c.Fields(&m.Version, &m.Capabilities, &m.Arch, &m.AgentUID, &m.CodeUID, &m.CodeGID, &m.Instance)
}
func (m *WinSize) Fields(c *wire.Coder) { c.Fields(&m.Rows, &m.Cols) }
func (m *Started) Fields(c *wire.Coder) {
	c.Fields(&m.ID, &m.PID, &m.OutOffset, &m.ErrOffset, &m.ControlOffset)
}

func (m *Exit) Fields(c *wire.Coder) {
	c.Fields(&m.Known, &m.Code, &m.Signal, (*uint8)(&m.Reason), &m.CPUMicros, &m.PeakRSS, &m.WallMicros, &m.OutTotal, &m.ErrTotal, &m.OutCut, &m.ErrCut, &m.OOMKills, &m.OOMKnown)
}

func (m *AttachRequest) Fields(c *wire.Coder) {
	c.Fields(&m.ID, &m.OutOffset, &m.ErrOffset, &m.ControlOffset)
}

func (m *LogsRequest) Fields(c *wire.Coder) { c.Fields(&m.ID, &m.OutOffset, &m.ErrOffset, &m.Follow) }
func (m *Output) Fields(c *wire.Coder)      { c.Fields(&m.Err, &m.Offset, &m.Data) }

func (m *ProcessInfo) Fields(c *wire.Coder) {
	c.Fields(&m.ID, &m.PID, &m.Tag, &m.Argv, &m.StartMillis, &m.Running, &m.Attached, &m.Resting, &m.OutStart, &m.OutEnd, &m.ErrStart, &m.ErrEnd, &m.CPUMicros, &m.RSS)
}

func (m *ProcessCount) Fields(c *wire.Coder)    { c.Fields(&m.Processes) }
func (m *SignalRequest) Fields(c *wire.Coder)   { c.Fields(&m.ID, &m.Signal, &m.Group) }
func (m *KillRequest) Fields(c *wire.Coder)     { c.Fields(&m.ID, &m.AfterMillis) }
func (m *DeadlineRequest) Fields(c *wire.Coder) { c.Fields(&m.Set, &m.Millis) }
func (m *Deadline) Fields(c *wire.Coder)        { c.Fields(&m.Millis, &m.Paused) }
func (m *FileInfo) Fields(c *wire.Coder) {
	c.Fields(&m.Name, (*uint8)(&m.Type), &m.Mode, &m.Size, &m.MTimeMicros, &m.UID, &m.GID, &m.Link)
}
func (m *PathRequest) Fields(c *wire.Coder)   { c.Fields(&m.Path) }
func (m *MkdirRequest) Fields(c *wire.Coder)  { c.Fields(&m.Path, &m.Mode, &m.Parents) }
func (m *RemoveRequest) Fields(c *wire.Coder) { c.Fields(&m.Path, &m.Recursive, &m.Missing) }
func (m *RenameRequest) Fields(c *wire.Coder) { c.Fields(&m.From, &m.To) }
func (m *ChmodRequest) Fields(c *wire.Coder)  { c.Fields(&m.Path, &m.Mode) }
func (m *ReadRequest) Fields(c *wire.Coder)   { c.Fields(&m.Path, &m.Offset, &m.Length, &m.Below) }
func (m *WriteRequest) Fields(c *wire.Coder) {
	c.Fields(&m.Path, &m.Offset, &m.Mode, &m.Create, &m.Exclusive, &m.Truncate, &m.Parents)
}
func (m *TarOutRequest) Fields(c *wire.Coder)  { c.Fields(&m.Path, &m.Prefix, &m.Links) }
func (m *TarInRequest) Fields(c *wire.Coder)   { c.Fields(&m.Dir, &m.MaxBytes, &m.MaxFiles, &m.Links) }
func (m *TarRootRequest) Fields(c *wire.Coder) { c.Fields(&m.All) }
func (m *TarResult) Fields(c *wire.Coder)      { c.Fields(&m.Files, &m.Bytes, &m.Skipped) }
func (m *WatchRequest) Fields(c *wire.Coder)   { c.Fields(&m.Path, &m.Recursive) }
func (m *WatchEvent) Fields(c *wire.Coder)     { c.Fields((*uint8)(&m.Op), &m.Path, &m.Dir) }
func (m *DialRequest) Fields(c *wire.Coder)    { c.Fields(&m.Port) }
func (m *ListenRequest) Fields(c *wire.Coder)  { c.Fields(&m.Port) }
func (m *Listening) Fields(c *wire.Coder)      { c.Fields(&m.Port) }
func (m *Connection) Fields(c *wire.Coder)     { c.Fields(&m.ID) }
func (m *AcceptRequest) Fields(c *wire.Coder)  { c.Fields(&m.ID) }
func (m *FindRequest) Fields(c *wire.Coder) {
	c.Fields(&m.Directories, &m.Marker, &m.SinceNanos, &m.MaxFiles, &m.Discard)
}
func (m *FoundFile) Fields(c *wire.Coder) {
	c.Fields(&m.Directory, &m.Path, &m.Size, &m.CTimeNanos, &m.Inode)
}
func (m *Error) Fields(c *wire.Coder) { c.Fields((*uint8)(&m.Code), &m.Msg) }
