//go:build linux

package engine

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

func TestPodmanConformance(t *testing.T) { testConformance(t, testengine.Podman(t)) }

func TestPodmanRootlessConformance(t *testing.T) { testConformance(t, testengine.PodmanRootless(t)) }
