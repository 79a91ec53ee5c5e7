//go:build linux

// Package chart installs the Helm chart of the servers on a real cluster, by the commands of deploy/README.md.
package chart

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
