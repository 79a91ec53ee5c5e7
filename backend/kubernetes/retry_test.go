package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAway(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{context.Canceled, false},
		{errors.New("something"), false},
		{refused, true},
		{fmt.Errorf("dial: %w", refused), true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{io.ErrUnexpectedEOF, true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{apierrors.NewTooManyRequests("busy", 1), true},
		{apierrors.NewInternalError(errors.New("error dialing backend: dial tcp 192.0.2.1:10250: connect: connection refused")), true},
		{apierrors.NewInternalError(errors.New(`error sending request: Post "https://192.0.2.1:10250/exec": connect: connection refused`)), true},
		{apierrors.NewInternalError(errors.New("unable to upgrade connection: pod does not exist")), true},
		{&url.Error{Op: "Delete", URL: "https://192.0.2.1:6443", Err: errors.New("http2: client connection lost")}, true},
		{apierrors.NewInternalError(errors.New("container not found")), false},
		{apierrors.NewNotFound(corev1.Resource("pods"), "a"), false},
		{apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no")), false},
	} {
		if got := away(c.err); got != c.want {
			t.Errorf("away(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

func TestPersist(t *testing.T) {
	down := apierrors.NewServiceUnavailable("starting")
	tries := 0
	err := persist(t.Context(), time.Minute, func() error {
		if tries++; tries < 3 {
			return down
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries, want success with the third", err, tries)
	}
	if err := persist(t.Context(), time.Nanosecond, func() error { return down }); !errors.Is(err, down) {
		t.Errorf("without patience: %v, want %v", err, down)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries = 0
	if err := persist(ctx, time.Hour, func() error { tries++; cancel(); return down }); !errors.Is(err, down) || tries != 1 {
		t.Errorf("given up: %v after %d tries, want %v, tries = 1", err, tries, down)
	}
}
