package abuse

import "time"

// What these print is for Check to search: the canary, what the test hides, and
// the patterns here.
var secretCases = []Case{
	{Number: 70, Name: "environ", Language: "python", Limits: Limits{Timeout: 20 * time.Second},
		Want: Want{Status: "ok", Output: []string{`own environment:`, `end\n\z`},
			Never: []string{`(?i)(AWS_|GITHUB_TOKEN|KUBERNETES_|SSH_AUTH_SOCK|XDG_RUNTIME_DIR|SUDO_|LLMSANDBOX_STATE)`}}},
	{Number: 72, Name: "canary", Language: "python", Limits: Limits{Timeout: 60 * time.Second},
		Want: Want{Status: "ok", Output: []string{`searched \d+ files`}, Never: []string{`FOUND`}}},
	{Number: 72, Name: "other_sandboxes", Language: "python", Limits: Limits{Timeout: 20 * time.Second},
		Want: Want{Status: "ok", Output: []string{`end\n\z`},
			Never: []string{`(docker|podman|containerd|agent|ssh-\S+/agent\.\d+)\.sock`, `socket \S*llmsandbox`, `REACHED`}}},
	{Number: 73, Name: "identity", Language: "python", Limits: Limits{Timeout: 20 * time.Second},
		Want: Want{Status: "ok", Output: []string{`end\n\z`}, Never: []string{`/home/[a-z]`, `/root/\S*\.(bash|ssh|aws|kube)`}}},
	{Number: 74, Name: "machine", Language: "python", Limits: Limits{Timeout: 20 * time.Second},
		Want: Want{Status: "ok", Output: []string{`end\n\z`}, Never: []string{`(lower|upper|work)dir=/(home|root|run|var)/`, `product_serial \S`}}},
}
