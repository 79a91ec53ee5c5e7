package mcp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A block of docs/mcp.md is what a user copies: the heading above it names the client.
type block struct{ heading, language, text string }

func blocks(t *testing.T) []block {
	t.Helper()
	data, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	heading, fence := "", regexp.MustCompile("^```([a-z]*)$")
	var open *block
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			open = &block{heading, m[1], ""}
		case m != nil:
			all, open = append(all, *open), nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	if open != nil {
		t.Fatalf("a block below %q has no end, want open = nil", open.heading)
	}
	return all
}

// formats are what each client documents for its file: the key of the servers, and the keys
// of one, of which the first ones must be there.
var formats = map[string]struct {
	servers string
	must    []string
	may     []string
	kind    string // of "type", where the client wants one
}{
	"Claude Desktop":        {servers: "mcpServers", must: []string{"command"}, may: []string{"args", "env"}},
	"Claude Code":           {servers: "mcpServers", must: []string{"type", "command"}, may: []string{"args", "env"}, kind: "stdio"},
	"Cursor":                {servers: "mcpServers", must: []string{"type", "command"}, may: []string{"args", "env", "envFile"}, kind: "stdio"},
	"VS Code":               {servers: "servers", must: []string{"type", "command"}, may: []string{"args", "env", "envFile", "cwd"}, kind: "stdio"},
	"Windsurf":              {servers: "mcpServers", must: []string{"command"}, may: []string{"args", "env"}},
	"Zed":                   {servers: "context_servers", must: []string{"command"}, may: []string{"args", "env"}},
	"Codex":                 {servers: "mcp_servers", must: []string{"command"}, may: []string{"args", "env", "cwd", "startup_timeout_sec", "tool_timeout_sec"}},
	"Gemini CLI":            {servers: "mcpServers", must: []string{"command"}, may: []string{"args", "env", "cwd", "timeout", "trust"}},
	"Other clients":         {servers: "mcpServers", must: []string{"command"}, may: []string{"args", "env"}},
	"Environment variables": {servers: "mcpServers", must: []string{"command"}, may: []string{"args", "env"}},
}

// overHTTP is the heading of the configurations for a server that runs already.
const overHTTP = "Connect clients over HTTP"

// parse reads a client's file, in either of the languages that they are written in.
func (b block) parse(t *testing.T, to any) {
	t.Helper()
	if b.language == "toml" {
		if err := toml.Unmarshal([]byte(b.text), to); err != nil {
			t.Fatal(err)
		}
		return
	}
	strict := json.NewDecoder(strings.NewReader(b.text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(to); err != nil {
		t.Fatal(err)
	}
}

// Each configuration of the docs is of its client's format, and really starts a server.
func TestConfigurationsOfTheDocs(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range blocks(t) {
		if b.language != "json" && b.language != "toml" || b.heading == overHTTP {
			continue
		}
		t.Run(b.heading, func(t *testing.T) {
			format, ok := formats[b.heading]
			if !ok {
				t.Fatalf("a configuration below %q, want the heading of a client that the test knows", b.heading)
			}
			seen[b.heading] = true
			var file map[string]map[string]map[string]any
			b.parse(t, &file)
			servers := file[format.servers]
			if len(file) != 1 || len(servers) != 1 {
				t.Fatalf("%d keys, %d servers below %q: want one of each", len(file), len(servers), format.servers)
			}
			for name, server := range servers {
				for _, key := range format.must {
					if server[key] == nil {
						t.Errorf("%s: %q is missing, want server[key] not nil", name, key)
					}
				}
				for key := range server {
					if !slices.Contains(format.must, key) && !slices.Contains(format.may, key) {
						t.Errorf("%s: %q is none of the client's keys", name, key)
					}
				}
				if kind, _ := server["type"].(string); kind != format.kind {
					t.Errorf("%s: type %q, want %q", name, kind, format.kind)
				}
				start(t, server)
			}
		})
	}
	for client := range formats {
		if !seen[client] {
			t.Errorf("the docs have no configuration for %s, want one", client)
		}
	}
}

// start does with a server's entry what a client does, and lists its tools.
func start(t *testing.T, server map[string]any) {
	t.Helper()
	env, _ := environment(t)
	name, _ := server["command"].(string)
	if name != "llmsandbox" {
		t.Fatalf("the command is %q, want \"llmsandbox\"", name)
	}
	var args []string
	list, _ := server["args"].([]any)
	for _, arg := range list {
		text, ok := arg.(string)
		if !ok {
			t.Fatalf("argument %v is no text, want text", arg)
		}
		args = append(args, text)
	}
	variables, _ := server["env"].(map[string]any)
	for key, value := range variables {
		text, ok := value.(string)
		if !ok {
			t.Fatalf("variable %s is no text, want text", key)
		}
		env = append(env, key+"="+text)
	}
	// A machine need not enforce what the example asks for.
	cmd := exec.Command(filepath.Join(command, name), append(args, "--best-effort")...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	session, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	for _, want := range toolNames {
		if !slices.Contains(names, want) {
			t.Errorf("no tool %s in %v", want, names)
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// The configurations for HTTP connect to a server that runs as the docs say.
func TestHTTPConfigurationsOfTheDocs(t *testing.T) {
	env, _ := environment(t)
	server := serve(t, env)
	// works lists the tools with what a client would send.
	works := func(url, header string) {
		t.Helper()
		out := inspect(t, env, strings.Replace(url, "http://127.0.0.1:8321", server.address, 1), "--header", "Authorization: "+header, "--method", "tools/list")
		if !strings.Contains(out, `"execute_code"`) {
			t.Errorf("%s, want it to contain \"\\\"execute_code\\\"\"", out)
		}
	}
	seen := map[string]bool{}
	for _, b := range blocks(t) {
		if b.heading != overHTTP {
			continue
		}
		seen[b.language] = true
		switch b.language {
		case "json":
			var file struct {
				Servers map[string]struct {
					Type, URL string
					Headers   map[string]string
				} `json:"mcpServers"`
			}
			b.parse(t, &file)
			entry := file.Servers["llm-sandbox"]
			if entry.Type != "http" || len(entry.Headers) != 1 {
				t.Fatalf("%+v, want Type = \"http\", len(entry.Headers) = 1", entry)
			}
			works(entry.URL, strings.ReplaceAll(entry.Headers["Authorization"], "${LLMSANDBOX_KEY}", server.key))
		case "toml":
			var file struct {
				Servers map[string]map[string]string `toml:"mcp_servers"`
			}
			b.parse(t, &file)
			entry := file.Servers["llm-sandbox"]
			if len(entry) != 2 || entry["bearer_token_env_var"] != "LLMSANDBOX_KEY" {
				t.Fatalf("%v, want the keys url and bearer_token_env_var", entry)
			}
			works(entry["url"], "Bearer "+server.key)
		}
	}
	if !seen["json"] || !seen["toml"] {
		t.Errorf("the docs have configurations for HTTP in %v, want json and toml", seen)
	}
}

// The Inspector reads the files of clients itself.
func TestInspectorReadsTheConfigurationOfTheDocs(t *testing.T) {
	for _, b := range blocks(t) {
		if b.language != "json" || b.heading != "Claude Code" {
			continue
		}
		file := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		env, _ := environment(t)
		if out := inspect(t, env, "--config", file, "--server", "llm-sandbox", "--method", "tools/list"); !strings.Contains(out, `"execute_code"`) {
			t.Errorf("%s, want it to contain \"\\\"execute_code\\\"\"", out)
		}
		return
	}
	t.Error("the docs have no file for Claude Code, want one")
}

// Every flag and tool that the docs name is there, and every tool is in the docs.
func TestDocsNameWhatThereIs(t *testing.T) {
	data, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	env, _ := environment(t)
	help, stderr, err := run(t, env, filepath.Join(command, "llmsandbox"), "mcp", "--help-all")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	// --scope is Claude Code's.
	for _, flag := range regexp.MustCompile("`[^`]*?(--[a-z][a-z-]+)[^`]*`").FindAllStringSubmatch(string(data), -1) {
		if !strings.Contains(help, flag[1]+" ") && flag[1] != "--scope" {
			t.Errorf("the docs name %s, want a flag of the command", flag[1])
		}
	}
	for _, tool := range toolNames {
		if !strings.Contains(string(data), "`"+tool) {
			t.Errorf("the docs do not tell of %s, want data containing %q", tool, "`"+tool)
		}
	}
}
