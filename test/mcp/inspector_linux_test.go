package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

const inspector = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

// inspect calls one method with the Inspector's command, and returns its JSON. The test
// fails where that warns of a tool that some clients cannot take.
func inspect(t *testing.T, env []string, args ...string) string {
	t.Helper()
	argv := append(node(t, inspector), "--cli")
	out, stderr, err := run(t, append(env, "HOME="+t.TempDir()), append(argv, args...)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", args, err, out, stderr)
	}
	if strings.Contains(stderr, "Warning: tool") {
		t.Errorf("%v: %s, want it not to contain \"Warning: tool\"", args, stderr)
	}
	return out
}

func TestInspectorOverStdio(t *testing.T) {
	env, _ := environment(t)
	server := []string{"llmsandbox", "mcp"}
	// Without --strict the Inspector would take tools that some clients cannot.
	var list struct {
		Tools []struct {
			Name        string
			InputSchema map[string]any
		}
	}
	if err := json.Unmarshal([]byte(inspect(t, env, append(server, "--method", "tools/list", "--strict")...)), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	for _, want := range toolNames {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("no tool %s in %v", want, names)
		}
	}
	out := inspect(t, env, append(server, "--method", "tools/call", "--tool-name", "execute_code", "--tool-arg", "code=print(6*7)", "language=python")...)
	wantOutcome(t, out)
	if out := inspect(t, env, append(server, "--method", "resources/read", "--uri", "sandbox://languages")...); !strings.Contains(out, "python") {
		t.Errorf("languages: %s, want it to contain \"python\"", out)
	}
	nothingLeft(t, env)
}

func TestInspectorOverHTTP(t *testing.T) {
	env, _ := environment(t)
	server := serve(t, env)
	out := inspect(t, env, server.address+"/mcp", "--transport", "http", "--header", "Authorization: Bearer "+server.key,
		"--method", "tools/call", "--tool-name", "execute_code", "--tool-arg", "code=print(6*7)")
	wantOutcome(t, out)
	server.stop()
	nothingLeft(t, env)
}

// wantOutcome checks the result of a program that prints 42.
func wantOutcome(t *testing.T, out string) {
	t.Helper()
	var res struct {
		Content           []struct{ Type, Text string }
		StructuredContent struct {
			ExitCode *int `json:"exit_code"`
			Stdout   string
		}
		IsError bool
	}
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := res.StructuredContent
	if res.IsError || got.ExitCode == nil || *got.ExitCode != 0 || got.Stdout != "42\n" || len(res.Content) != 1 || !strings.Contains(res.Content[0].Text, `"exit_code":0`) {
		t.Errorf("%s, want IsError false, ExitCode = 0, Stdout = \"42\\n\", len(res.Content) = 1, Text containing \"\\\"exit_code\\\":0\"", out)
	}
}
