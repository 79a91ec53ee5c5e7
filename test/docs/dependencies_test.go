package docs_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestWhoLinksWhat holds what docs/dependencies.md promises: who does not import a backend
// pays nothing for its client.
func TestWhoLinksWhat(t *testing.T) {
	const docker, kubernetes, huma, ours = "github.com/moby/moby/", "k8s.io/", "github.com/danielgtaylor/huma/", "github.com/llmsandbox/llmsandbox/"
	const sqlite, postgres = "modernc.org/", "github.com/jackc/"
	for _, c := range []struct {
		packages []string
		without  []string
		with     []string // which shows that these would be seen
	}{
		{packages: []string{".", "./backend/local", "./backend/backendtest", "./pool", "./security/policyfile"}, without: []string{docker, kubernetes, sqlite, postgres}},
		{packages: []string{"./mcp", "./internal/mcpenv"}, without: []string{docker, kubernetes, sqlite, postgres}},
		{packages: []string{"./client"}, without: []string{docker, kubernetes, sqlite, postgres, huma, ours + "pool", ours + "internal/service"}, with: []string{ours + "internal/apitypes"}},
		{packages: []string{"./httpapi"}, without: []string{docker, kubernetes, sqlite, postgres}, with: []string{huma, ours + "pool", ours + "internal/service"}},
		{packages: []string{"./backend/docker", "./backend/podman"}, without: []string{kubernetes, sqlite, postgres}, with: []string{docker}},
		{packages: []string{"./backend/kubernetes"}, without: []string{docker, sqlite, postgres}, with: []string{kubernetes}},
		{packages: []string{"./cmd/llmsandbox-agent"}, without: []string{docker, kubernetes, "net/http", "github.com/spf13/"}},
		{packages: []string{"./cmd/llmsandbox", "./internal/cli"}, without: []string{kubernetes, "sigs.k8s.io/", ours + "backend/kubernetes", "github.com/chromedp/"}, with: []string{docker, sqlite, postgres, ours + "internal/cli", ours + "web"}},
		{packages: []string{"./cmd/llmsandbox-kubernetes"}, with: []string{docker, kubernetes, ours + "backend/kubernetes"}},
	} {
		cmd := exec.Command("go", append([]string{"list", "-deps"}, c.packages...)...)
		cmd.Dir = root
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.packages, err, stderr.String())
		}
		seen := func(prefix string) string {
			for line := range strings.Lines(string(out)) {
				if strings.HasPrefix(line, prefix) {
					return strings.TrimSpace(line)
				}
			}
			return ""
		}
		for _, prefix := range c.without {
			if found := seen(prefix); found != "" {
				t.Errorf("%v link %s, want empty", c.packages, found)
			}
		}
		for _, prefix := range c.with {
			if seen(prefix) == "" {
				t.Errorf("%v link nothing of %s, want seen(prefix) not empty", c.packages, prefix)
			}
		}
	}
}
