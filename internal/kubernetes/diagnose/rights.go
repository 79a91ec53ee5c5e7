package diagnose

import (
	"context"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// permissions asks what the caller may do.
func (r *Report) permissions(ctx context.Context, c *access.Cluster) []backend.Finding {
	missing, err := access.Missing(ctx, c)
	if err != nil {
		return []backend.Finding{broken("permissions", err)}
	}
	r.Missing = missing
	if len(missing) == 0 {
		return []backend.Finding{fine("permissions", fmt.Sprintf("all %d that sandboxes need in namespace %s", len(access.Needed()), c.Namespace))}
	}
	var required, optional []access.Permission
	for _, p := range missing {
		if p.Optional {
			optional = append(optional, p)
		} else {
			required = append(required, p)
		}
	}
	var lines []backend.Finding
	if len(required) > 0 {
		lines = append(lines, fatal("permissions", lacking(c, required), grant(required)))
	}
	if len(optional) > 0 {
		lines = append(lines, weak("optional permissions", lacking(c, optional), grant(optional)))
	}
	return lines
}

// lacking returns what is missing and what for.
func lacking(c *access.Cluster, missing []access.Permission) string {
	var parts []string
	for _, p := range missing {
		parts = append(parts, fmt.Sprintf("%s (%s)", p, p.Why))
	}
	return fmt.Sprintf("in namespace %s the caller may not: %s", c.Namespace, strings.Join(parts, "; "))
}

// grant is what to add to the caller's Role, as YAML.
func grant(missing []access.Permission) string {
	var b strings.Builder
	b.WriteString("use the Role of deploy/, or add to the rules of the caller's Role:")
	for _, r := range access.Rules(missing) {
		fmt.Fprintf(&b, "\n- {apiGroups: [%q], resources: [%s], verbs: [%s]}", r.APIGroups[0], r.Resources[0], strings.Join(r.Verbs, ", "))
	}
	return b.String()
}
