package collect

import (
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// maxSeen bounds how many files are remembered. Only those that changed within the same
// tick of the kernel's clock as a run began, or while runs go on side by side, can be
// found twice: forgetting the rest costs nothing.
const maxSeen = 8192

// Seen remembers which files were collected, so that each is an artifact once per
// change. A nil one remembers nothing. It is safe for concurrent use.
type Seen struct {
	mu    sync.Mutex
	files map[string]identity
}

type identity struct {
	inode uint64
	ctime int64
}

// first reports whether a file has not been collected as it is now, and remembers it.
func (s *Seen) first(folder string, f agentproto.FoundFile) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, is := folder+"/"+f.Path, identity{f.Inode, f.CTimeNanos}
	if s.files[key] == is {
		return false
	}
	if s.files == nil || len(s.files) >= maxSeen {
		s.files = map[string]identity{}
	}
	s.files[key] = is
	return true
}
