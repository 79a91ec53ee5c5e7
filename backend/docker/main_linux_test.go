package docker

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testengine.IgnoreDaemons())
}
