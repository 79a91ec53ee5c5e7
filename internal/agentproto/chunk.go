package agentproto

import "sync"

// smallChunk is the capacity of the chunk that a small piece of data starts; a
// piece that does not fit starts one of MaxFrame.
const smallChunk = 4 << 10

// A chunk holds received bytes that have not been read yet: buf[r:w]. The reading
// goroutine appends, the consumer takes off the front.
type chunk struct {
	buf  []byte
	r, w int
}

var (
	smallChunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, smallChunk)} }}
	largeChunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, MaxFrame)} }}
)

func newChunk(size int) *chunk {
	if size <= smallChunk {
		return smallChunks.Get().(*chunk)
	}
	return largeChunks.Get().(*chunk)
}

func (k *chunk) free() {
	k.r, k.w = 0, 0
	if len(k.buf) == smallChunk {
		smallChunks.Put(k)
	} else {
		largeChunks.Put(k)
	}
}
