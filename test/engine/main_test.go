//go:build linux

// Package engine runs sandboxes on real container engines.
package engine

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

func TestMain(m *testing.M) {
	testfaults.Own(openOwned)
	backendtest.Child(conformance)
	testengine.Main(m)
}

// engines are what each test of this package runs on.
var engines = []struct {
	name  string
	start func(testing.TB) *testengine.Engine
}{
	{"docker", testengine.Docker},
	{"podman", testengine.Podman},
	{"podman-rootless", testengine.PodmanRootless},
}
