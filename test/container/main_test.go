//go:build linux

// Package container runs the command in containers that others make, as docs/containers.md says.
package container

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
