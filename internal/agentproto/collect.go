package agentproto

import "io"

// Collected reports, at the server's end of MethodStart and MethodAttach, that the
// client has consumed the final message and every byte of every channel.
func (c *Call) Collected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.collected
}

// acceptsAcks reports whether the other end still wants to know what was consumed.
// It is called with mu held.
func (c *Call) acceptsAcks() bool {
	return c.term == nil || c.term == io.EOF && c.method.collectable()
}

// collectable reports whether the server wants to know when the client has consumed
// everything, because otherwise another client may ask for it.
func (m Method) collectable() bool { return m == MethodStart || m == MethodAttach }

// takeCollect reports whether it is time to tell the server that everything was
// consumed. It is called with mu held.
func (c *Call) takeCollect() bool {
	if c.conn.handler != nil || !c.finalRead || c.collected || c.dropped || !c.method.collectable() {
		return false
	}
	for i := range c.in {
		if c.in[i].consumed < c.in[i].received {
			return false
		}
	}
	c.collected = true
	return true
}

func (c *Call) sendCollect(due bool) {
	if due {
		// A failure ends the stream: then the server keeps the result.
		_ = c.conn.w.frame(header{typ: frameCollect, call: c.id}, nil)
	}
}
