package agentproto

import "encoding/binary"

func (m *FileInfo) append(b []byte) []byte {
	b = appendText(b, m.Name)
	b = appendUint(b, m.Type)
	b = appendUint(b, m.Mode)
	b = appendUint(b, m.Size)
	b = binary.AppendVarint(b, m.MTimeMicros)
	b = appendUint(b, m.UID)
	b = appendUint(b, m.GID)
	return appendText(b, m.Link)
}

func (m *FileInfo) parse(d *decoder) {
	m.Name = d.string()
	m.Type = FileType(d.uint8())
	m.Mode = d.uint32()
	m.Size = d.uint64()
	m.MTimeMicros = d.int64()
	m.UID = d.uint32()
	m.GID = d.uint32()
	m.Link = d.string()
}

func (m *PathRequest) append(b []byte) []byte { return appendText(b, m.Path) }
func (m *PathRequest) parse(d *decoder)       { m.Path = d.string() }

func (m *FileList) append(b []byte) []byte {
	b = appendUint(b, uint64(len(m.Files)))
	for i := range m.Files {
		b = m.Files[i].append(b)
	}
	return appendBool(b, m.Truncated)
}

func (m *FileList) parse(d *decoder) {
	m.Files = parseList(d, 8, func(d *decoder) (f FileInfo) {
		f.parse(d)
		return f
	})
	m.Truncated = d.bool()
}

func (m *MkdirRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	b = appendUint(b, m.Mode)
	return appendBool(b, m.Parents)
}

func (m *MkdirRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Mode = d.uint32()
	m.Parents = d.bool()
}

func (m *RemoveRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	b = appendBool(b, m.Recursive)
	return appendBool(b, m.Missing)
}

func (m *RemoveRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Recursive = d.bool()
	m.Missing = d.bool()
}

func (m *RenameRequest) append(b []byte) []byte {
	b = appendText(b, m.From)
	return appendText(b, m.To)
}

func (m *RenameRequest) parse(d *decoder) {
	m.From = d.string()
	m.To = d.string()
}

func (m *ChmodRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	return appendUint(b, m.Mode)
}

func (m *ChmodRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Mode = d.uint32()
}

func (m *ReadRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	b = appendUint(b, m.Offset)
	b = appendUint(b, m.Length)
	return appendText(b, m.Below)
}

func (m *ReadRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Offset = d.uint64()
	m.Length = d.uint64()
	m.Below = d.string()
}

func (m *WriteRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	b = appendUint(b, m.Offset)
	b = appendUint(b, m.Mode)
	b = appendBool(b, m.Create)
	b = appendBool(b, m.Exclusive)
	b = appendBool(b, m.Truncate)
	return appendBool(b, m.Parents)
}

func (m *WriteRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Offset = d.uint64()
	m.Mode = d.uint32()
	m.Create = d.bool()
	m.Exclusive = d.bool()
	m.Truncate = d.bool()
	m.Parents = d.bool()
}

func (m *TarOutRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	b = appendText(b, m.Prefix)
	return appendBool(b, m.Links)
}

func (m *TarOutRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Prefix = d.string()
	m.Links = d.bool()
}

func (m *TarInRequest) append(b []byte) []byte {
	b = appendText(b, m.Dir)
	b = appendUint(b, m.MaxBytes)
	b = appendUint(b, m.MaxFiles)
	return appendBool(b, m.Links)
}

func (m *TarInRequest) parse(d *decoder) {
	m.Dir = d.string()
	m.MaxBytes = d.uint64()
	m.MaxFiles = d.uint64()
	m.Links = d.bool()
}

func (m *TarResult) append(b []byte) []byte {
	b = appendUint(b, m.Files)
	b = appendUint(b, m.Bytes)
	return appendStrings(b, m.Skipped)
}

func (m *TarResult) parse(d *decoder) {
	m.Files = d.uint64()
	m.Bytes = d.uint64()
	m.Skipped = d.strings()
}

func (m *WatchRequest) append(b []byte) []byte {
	b = appendText(b, m.Path)
	return appendBool(b, m.Recursive)
}

func (m *WatchRequest) parse(d *decoder) {
	m.Path = d.string()
	m.Recursive = d.bool()
}

func (m *WatchEvent) append(b []byte) []byte {
	b = appendUint(b, m.Op)
	b = appendText(b, m.Path)
	return appendBool(b, m.Dir)
}

func (m *WatchEvent) parse(d *decoder) {
	m.Op = WatchOp(d.uint8())
	m.Path = d.string()
	m.Dir = d.bool()
}

func (m *DialRequest) append(b []byte) []byte { return appendUint(b, m.Port) }
func (m *DialRequest) parse(d *decoder)       { m.Port = d.uint16() }
