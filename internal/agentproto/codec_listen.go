package agentproto

func (m *ListenRequest) append(b []byte) []byte { return appendUint(b, m.Port) }
func (m *ListenRequest) parse(d *decoder)       { m.Port = d.uint16() }

func (m *Listening) append(b []byte) []byte { return appendUint(b, m.Port) }
func (m *Listening) parse(d *decoder)       { m.Port = d.uint16() }

func (m *Connection) append(b []byte) []byte { return appendUint(b, m.ID) }
func (m *Connection) parse(d *decoder)       { m.ID = d.uint64() }

func (m *AcceptRequest) append(b []byte) []byte { return appendUint(b, m.ID) }
func (m *AcceptRequest) parse(d *decoder)       { m.ID = d.uint64() }
