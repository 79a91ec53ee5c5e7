package agentproto

func (m *Hello) append(b []byte) []byte {
	b = appendUint(b, m.Version)
	b = appendStrings(b, m.Capabilities)
	b = appendText(b, m.Arch)
	b = appendUint(b, m.AgentUID)
	b = appendUint(b, m.CodeUID)
	b = appendUint(b, m.CodeGID)
	return appendUint(b, m.Instance)
}

func (m *Hello) parse(d *decoder) {
	m.Version = d.uint32()
	m.Capabilities = d.strings()
	m.Arch = d.string()
	m.AgentUID = d.uint32()
	m.CodeUID = d.uint32()
	m.CodeGID = d.uint32()
	m.Instance = d.uint64()
}

func (*Empty) append(b []byte) []byte { return b }
func (*Empty) parse(*decoder)         {}

func (m *StartRequest) append(b []byte) []byte {
	b = appendStrings(b, m.Argv)
	b = appendStrings(b, m.Env)
	b = appendText(b, m.Dir)
	b = appendText(b, m.User)
	b = appendText(b, m.Tag)
	b = appendBool(b, m.Stdin)
	b = appendBool(b, m.Merge)
	b = appendBool(b, m.PTY != nil)
	if m.PTY != nil {
		b = m.PTY.append(b)
	}
	b = appendBool(b, m.Control)
	b = appendBool(b, m.KeepChildren)
	b = appendUint(b, m.Rest)
	b = appendUint(b, m.TimeoutMillis)
	b = appendUint(b, m.OutputLimit)
	b = appendUint(b, uint64(len(m.Rlimits)))
	for _, r := range m.Rlimits {
		b = appendUint(b, r.Resource)
		b = appendUint(b, r.Value)
	}
	b = appendUint(b, uint64(len(m.Files)))
	for _, f := range m.Files {
		b = appendText(b, f.Path)
		b = appendUint(b, f.Mode)
		b = appendText(b, f.Data)
	}
	return appendStrings(b, m.RemoveAfter)
}

func (m *StartRequest) parse(d *decoder) {
	m.Argv = d.strings()
	m.Env = d.strings()
	m.Dir = d.string()
	m.User = d.string()
	m.Tag = d.string()
	m.Stdin = d.bool()
	m.Merge = d.bool()
	if d.bool() {
		m.PTY = new(WinSize)
		m.PTY.parse(d)
	}
	m.Control = d.bool()
	m.KeepChildren = d.bool()
	m.Rest = Rest(d.uint8())
	m.TimeoutMillis = d.uint64()
	m.OutputLimit = d.uint64()
	m.Rlimits = parseList(d, 2, func(d *decoder) Rlimit {
		return Rlimit{Resource: d.uint32(), Value: d.uint64()}
	})
	m.Files = parseList(d, 3, func(d *decoder) InlineFile {
		return InlineFile{Path: d.string(), Mode: d.uint32(), Data: d.bytes()}
	})
	m.RemoveAfter = d.strings()
}

func (m *WinSize) append(b []byte) []byte {
	b = appendUint(b, m.Rows)
	return appendUint(b, m.Cols)
}

func (m *WinSize) parse(d *decoder) {
	m.Rows = d.uint16()
	m.Cols = d.uint16()
}

func (m *Started) append(b []byte) []byte {
	b = appendUint(b, m.ID)
	b = appendUint(b, m.PID)
	b = appendUint(b, m.OutOffset)
	b = appendUint(b, m.ErrOffset)
	return appendUint(b, m.ControlOffset)
}

func (m *Started) parse(d *decoder) {
	m.ID = d.uint64()
	m.PID = d.uint32()
	m.OutOffset = d.uint64()
	m.ErrOffset = d.uint64()
	m.ControlOffset = d.uint64()
}

func (m *Exit) append(b []byte) []byte {
	b = appendBool(b, m.Known)
	b = appendUint(b, m.Code)
	b = appendUint(b, m.Signal)
	b = appendUint(b, m.Reason)
	b = appendUint(b, m.CPUMicros)
	b = appendUint(b, m.PeakRSS)
	b = appendUint(b, m.WallMicros)
	b = appendUint(b, m.OutTotal)
	b = appendUint(b, m.ErrTotal)
	b = appendBool(b, m.OutCut)
	b = appendBool(b, m.ErrCut)
	b = appendUint(b, m.OOMKills)
	return appendBool(b, m.OOMKnown)
}

func (m *Exit) parse(d *decoder) {
	m.Known = d.bool()
	m.Code = d.uint32()
	m.Signal = d.uint32()
	m.Reason = KillReason(d.uint8())
	m.CPUMicros = d.uint64()
	m.PeakRSS = d.uint64()
	m.WallMicros = d.uint64()
	m.OutTotal = d.uint64()
	m.ErrTotal = d.uint64()
	m.OutCut = d.bool()
	m.ErrCut = d.bool()
	m.OOMKills = d.uint64()
	m.OOMKnown = d.bool()
}

func (m *AttachRequest) append(b []byte) []byte {
	b = appendUint(b, m.ID)
	b = appendUint(b, m.OutOffset)
	b = appendUint(b, m.ErrOffset)
	return appendUint(b, m.ControlOffset)
}

func (m *AttachRequest) parse(d *decoder) {
	m.ID = d.uint64()
	m.OutOffset = d.uint64()
	m.ErrOffset = d.uint64()
	m.ControlOffset = d.uint64()
}

func (m *ProcessInfo) append(b []byte) []byte {
	b = appendUint(b, m.ID)
	b = appendUint(b, m.PID)
	b = appendText(b, m.Tag)
	b = appendStrings(b, m.Argv)
	b = appendUint(b, m.StartMillis)
	b = appendBool(b, m.Running)
	b = appendBool(b, m.Attached)
	b = appendUint(b, m.OutStart)
	b = appendUint(b, m.OutEnd)
	b = appendUint(b, m.ErrStart)
	b = appendUint(b, m.ErrEnd)
	b = appendUint(b, m.CPUMicros)
	return appendUint(b, m.RSS)
}

func (m *ProcessInfo) parse(d *decoder) {
	m.ID = d.uint64()
	m.PID = d.uint32()
	m.Tag = d.string()
	m.Argv = d.strings()
	m.StartMillis = d.uint64()
	m.Running = d.bool()
	m.Attached = d.bool()
	m.OutStart = d.uint64()
	m.OutEnd = d.uint64()
	m.ErrStart = d.uint64()
	m.ErrEnd = d.uint64()
	m.CPUMicros = d.uint64()
	m.RSS = d.uint64()
}

func (m *ProcessList) append(b []byte) []byte {
	b = appendUint(b, uint64(len(m.Processes)))
	for i := range m.Processes {
		b = m.Processes[i].append(b)
	}
	return b
}

func (m *ProcessList) parse(d *decoder) {
	m.Processes = parseList(d, 13, func(d *decoder) (p ProcessInfo) {
		p.parse(d)
		return p
	})
}

func (m *ProcessCount) append(b []byte) []byte { return appendUint(b, m.Processes) }
func (m *ProcessCount) parse(d *decoder)       { m.Processes = d.uint64() }

func (m *SignalRequest) append(b []byte) []byte {
	b = appendUint(b, m.ID)
	b = appendUint(b, m.Signal)
	return appendBool(b, m.Group)
}

func (m *SignalRequest) parse(d *decoder) {
	m.ID = d.uint64()
	m.Signal = d.uint32()
	m.Group = d.bool()
}

func (m *KillRequest) append(b []byte) []byte { return appendUint(appendUint(b, m.ID), m.AfterMillis) }
func (m *KillRequest) parse(d *decoder)       { m.ID, m.AfterMillis = d.uint64(), d.uint64() }

func (m *ResizeRequest) append(b []byte) []byte {
	b = appendUint(b, m.ID)
	return m.Size.append(b)
}

func (m *ResizeRequest) parse(d *decoder) {
	m.ID = d.uint64()
	m.Size.parse(d)
}

func (e *Error) append(b []byte) []byte {
	b = appendUint(b, e.Code)
	return appendText(b, e.Msg)
}

func (e *Error) parse(d *decoder) {
	e.Code = ErrorCode(d.uint8())
	e.Msg = d.string()
}
