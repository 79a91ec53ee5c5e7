package engine

import "sync"

// lazy is a value that is found out once; a failure is not kept.
type lazy[T any] struct {
	mu    sync.Mutex
	known bool
	value T
}

func (l *lazy[T]) get(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.value, nil
	}
	v, err := find()
	if err == nil {
		l.value, l.known = v, true
	}
	return v, err
}
