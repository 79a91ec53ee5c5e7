package service

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// What records in memory are bounded by, and what others that hold programs' results should be.
const (
	recordAge   = 24 * time.Hour
	recordBytes = 64 << 20 // of a project
)

// memory are records that end with the service.
type memory struct {
	mu  sync.Mutex
	all []record // the oldest first
}

type record struct {
	project, sandbox, name string
	open                   bool
	data                   []byte
	at                     time.Time
}

func (r *record) is(project, sandbox, name string) bool {
	return r.project == project && r.sandbox == sandbox && r.name == name
}

// PutRecord implements database.Records.
func (m *memory) PutRecord(_ context.Context, project, sandbox, name string, open bool, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(project, sandbox, name, open, data)
	return nil
}

func (m *memory) put(project, sandbox, name string, open bool, data []byte) {
	m.all = slices.DeleteFunc(m.all, func(r record) bool { return r.is(project, sandbox, name) })
	m.all = append(m.all, record{project, sandbox, name, open, data, time.Now()})
	size, oldest := 0, time.Now().Add(-recordAge)
	for i := len(m.all) - 1; i >= 0; i-- {
		r := &m.all[i]
		if r.project == project {
			size += len(r.data)
		}
		if !r.open && (r.at.Before(oldest) || r.project == project && size > recordBytes) {
			m.all = slices.Delete(m.all, i, i+1)
		}
	}
}

// AddRecord implements database.Records.
func (m *memory) AddRecord(_ context.Context, project, sandbox, name string, data []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest := time.Now().Add(-recordAge)
	if slices.ContainsFunc(m.all, func(r record) bool {
		return r.is(project, sandbox, name) && (r.open || !r.at.Before(oldest))
	}) {
		return false, nil
	}
	m.put(project, sandbox, name, false, data)
	return true, nil
}

// Record implements database.Records.
func (m *memory) Record(_ context.Context, project, sandbox, name string) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.all {
		if r.is(project, sandbox, name) {
			return r.data, r.open, nil
		}
	}
	return nil, false, fmt.Errorf("record %s: %w", name, fs.ErrNotExist)
}

// OpenRecords implements database.Records.
func (m *memory) OpenRecords(_ context.Context, project, sandbox string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, r := range m.all {
		if r.open && r.is(project, sandbox, r.name) {
			names = append(names, r.name)
		}
	}
	return names, nil
}

// RemoveRecord implements database.Records.
func (m *memory) RemoveRecord(_ context.Context, project, sandbox, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(r record) bool { return r.is(project, sandbox, name) })
	return nil
}

// RemoveRecords implements database.Records.
func (m *memory) RemoveRecords(_ context.Context, project, sandbox string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(r record) bool { return r.is(project, sandbox, r.name) })
	return nil
}
