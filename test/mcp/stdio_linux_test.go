package mcp

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolNames are the tools that clients find.
var toolNames = []string{
	"execute_code", "get_supported_languages", "get_language_details",
	"create_session", "run_in_session", "install_libraries", "list_files", "read_file", "write_file", "edit_file", "close_session",
}

// A server that is asked to end while code runs ends it, and leaves nothing.
func TestSignalEndsARunningCall(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			env, _ := environment(t)
			cmd := exec.Command(filepath.Join(command, "llmsandbox"), "mcp", "--best-effort", "--network", "none")
			cmd.Env, cmd.Stderr = env, os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			send := func(message string) {
				if _, err := io.WriteString(in, message+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			// answer reads to the answer of a request; each line must be of the protocol.
			answer := func(id float64) map[string]any {
				for lines.Scan() {
					var m map[string]any
					if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
						t.Fatalf("not of the protocol: %q, want no error, m[\"jsonrpc\"] = \"2.0\"", lines.Text())
					}
					if m["id"] == id {
						return m
					}
				}
				t.Fatalf("no answer to request %v: %v, want one", id, lines.Err())
				return nil
			}
			send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			answer(1)
			send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_session","arguments":{}}}`)
			created, _ := answer(2)["result"].(map[string]any)["structuredContent"].(map[string]any)
			id, _ := created["session_id"].(string)
			// The file tells that the code runs.
			code := `open("/sandbox/running", "w").close()` + "\nimport time\ntime.sleep(1000)"
			call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": map[string]any{
				"name": "run_in_session", "arguments": map[string]any{"session_id": id, "code": code, "timeout": 200}}})
			if err != nil {
				t.Fatal(err)
			}
			send(string(call))
			for n := 10.0; ; n++ {
				call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": map[string]any{
					"name": "list_files", "arguments": map[string]any{"session_id": id}}})
				if err != nil {
					t.Fatal(err)
				}
				send(string(call))
				text, err := json.Marshal(answer(n))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "running") {
					break
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // what it still has to say, to its end
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
			nothingLeft(t, env)
		})
	}
}

// The SDK's client starts the command, asks for pictures, and leaves.
func TestSDKClientOverStdio(t *testing.T) {
	env, _ := environment(t)
	cmd := exec.Command(filepath.Join(command, "llmsandbox"), "mcp", "--best-effort")
	cmd.Env, cmd.Stderr = env, os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "import os; print(os.path.exists('x')); open('x','w').close()"}})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := res.Content[0].(*sdk.TextContent); !ok || res.IsError || !strings.Contains(text.Text, `False\n`) {
			t.Errorf("%+v, want ok = true, IsError false, Text containing \"False\\\\n\"", res.Content[0])
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, env)
}
