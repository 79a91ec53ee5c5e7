//go:build linux

// Package kubernetes runs sandboxes as pods of a real cluster, and lets happen to them what
// happens to pods.
package kubernetes

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

func TestMain(m *testing.M) {
	testfaults.Own(openOwned)
	backendtest.Child(conformance)
	testcluster.Main(m)
}
