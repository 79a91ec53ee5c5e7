package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUserNamespacesBySettings(t *testing.T) {
	const most, anybody, apparmor, label = "sys/user/max_user_namespaces", "sys/kernel/unprivileged_userns_clone", "sys/kernel/apparmor_restrict_unprivileged_userns", "self/attr/apparmor/current"
	for _, c := range []struct {
		name  string
		files map[string]string
		uid   int
		why   string // in what is reported; empty: they can be made
	}{
		{"no settings", nil, 1000, ""},
		{"none may be made", map[string]string{most: "0\n"}, 1000, "max_user_namespaces"},
		{"none may be made, root", map[string]string{most: "0\n"}, 0, "max_user_namespaces"},
		{"for root, a user", map[string]string{anybody: "0\n"}, 1000, "unprivileged_userns_clone"},
		{"for root, root", map[string]string{anybody: "0\n"}, 0, ""},
		{"AppArmor", map[string]string{apparmor: "1\n"}, 1000, "apparmor_restrict"},
		{"AppArmor, turned off", map[string]string{apparmor: "0\n"}, 1000, ""},
		{"AppArmor, root", map[string]string{apparmor: "1\n", label: "unconfined\n"}, 0, ""},
		{"AppArmor, no profile", map[string]string{apparmor: "1\n", label: "unconfined\n"}, 1000, "apparmor_restrict"},
		{"AppArmor, a profile", map[string]string{apparmor: "1\n", label: "llmsandbox (unconfined)\n"}, 1000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := t.TempDir()
			files := map[string]string{"self/ns/user": ""}
			for name, content := range c.files {
				files[name] = content
			}
			for name, content := range files {
				path := filepath.Join(proc, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := userNamespacesBy(proc, c.uid)
			if got.Enforced != (c.why == "") || !strings.Contains(got.Why, c.why) || got.Enforced == (got.Fix != "") {
				t.Errorf("%+v, want Enforced = %v, Why with %q, and Fix unless it is enforced", got, c.why == "", c.why)
			}
		})
	}
}
