package agentproto

func (m *DeadlineRequest) append(b []byte) []byte {
	b = appendBool(b, m.Set)
	return appendUint(b, m.Millis)
}

func (m *DeadlineRequest) parse(d *decoder) {
	m.Set = d.bool()
	m.Millis = d.uint64()
}

func (m *Deadline) append(b []byte) []byte {
	b = appendUint(b, m.Millis)
	return appendBool(b, m.Paused)
}

func (m *Deadline) parse(d *decoder) {
	m.Millis = d.uint64()
	m.Paused = d.bool()
}
