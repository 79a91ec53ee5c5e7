package podwatch

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// A podStore hands what a reflection of pods brings to the followers.
type podStore struct {
	watcher *Watcher
	of      *reflection
}

// with calls do unless the reflection is over: a later one may have begun.
func (s *podStore) with(do func()) error {
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	if s.watcher.pods == s.of {
		do()
	}
	return nil
}

func (s *podStore) Add(obj any) error { return s.Update(obj) }

func (s *podStore) Update(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return s.with(func() { s.see(pod) })
}

func (s *podStore) see(pod *corev1.Pod) {
	// A copy of the top: the caller may still read it.
	own := *pod
	own.ManagedFields = nil
	pod = &own
	s.watcher.known[pod.Name] = pod
	for p := range s.watcher.followers[pod.Name] {
		p.see(pod)
	}
}

func (s *podStore) Delete(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return s.with(func() {
		delete(s.watcher.known, pod.Name)
		for p := range s.watcher.followers[pod.Name] {
			p.removed(pod)
		}
	})
}

// Replace is what a list brings, which may be older than what a follower knows.
func (s *podStore) Replace(all []any, version string) error {
	return s.with(func() {
		clear(s.watcher.known)
		for _, obj := range all {
			if pod, ok := obj.(*corev1.Pod); ok {
				s.see(pod)
			}
		}
		s.watcher.each(func(p *Pod) {
			if s.watcher.known[p.name] == nil {
				p.missing(version)
			}
		})
	})
}

func (s *podStore) Resync() error { return nil }

// older reports whether a version of an object is known to be older than another one.
func older(a, b string) bool {
	x, xerr := strconv.ParseUint(a, 10, 64)
	y, yerr := strconv.ParseUint(b, 10, 64)
	return xerr == nil && yerr == nil && x < y
}

// An eventStore hands warnings to the followers of the pods that they are about.
type eventStore struct{ watcher *Watcher }

func (s *eventStore) Add(obj any) error { return s.Update(obj) }

func (s *eventStore) Update(obj any) error {
	e, ok := obj.(*corev1.Event)
	if !ok {
		return nil
	}
	failed := failedBy(e)
	if failed == nil {
		return nil
	}
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	for p := range s.watcher.followers[e.InvolvedObject.Name] {
		p.warn(e.InvolvedObject.UID, failed)
	}
	return nil
}

func (s *eventStore) Replace(all []any, _ string) error {
	for _, obj := range all {
		if err := s.Update(obj); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventStore) Delete(any) error { return nil }
func (s *eventStore) Resync() error    { return nil }
