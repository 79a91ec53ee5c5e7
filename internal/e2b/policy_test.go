package e2b

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/security"
)

// TestPolicyOfLines: the policy is asked about lines of a shell, as it is where the API is sent them, and not about other programs.
func TestPolicyOfLines(t *testing.T) {
	checker, err := security.Compile(security.Policy{Name: "test", Threshold: security.Low, Names: []security.RestrictedName{{Name: "rm", Severity: security.High}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, warn := range map[string]bool{"refuses": false, "warns": true} {
		t.Run(name, func(t *testing.T) {
			b := serveWith(t, func(core *service.Config, _ *Config) {
				core.Sandbox.Policy = llmsandbox.Policy{Checker: checker, WarnOnly: warn}
			}).open(llmsandbox.Options{})
			const removes = "echo ran; cd /tmp && rm -f none"
			f, err := b.start(testContext(t), line(removes))
			switch {
			case warn:
				b.must(f, err).wantEnd("ran\n", 0, "exit status 0")
			case connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), `policy test refuses "rm`):
				t.Errorf("%v, want that the policy refuses it, and why", err)
			}
			for _, in := range []*process.StartRequest{line("echo ran; cd /tmp"), {Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", removes}}}} {
				b.must(b.start(testContext(t), in)).wantEnd("ran\n", 0, "exit status 0")
			}
		})
	}
}
