package mcp

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func TestAcceptance100Languages(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	res := use(t, client, "get_supported_languages", nil)
	names := decode[[]string](t, res)
	if len(names) < 7 || !slices.Contains(names, "python") {
		t.Errorf("%q, want len(names) >= 7, names containing \"python\"", names)
	}
	if structured, ok := res.StructuredContent.(map[string]any); !ok || len(structured["languages"].([]any)) != len(names) {
		t.Errorf("%#v, want ok = true, len(structured[\"languages\"].([]any)) = %v", res.StructuredContent, len(names))
	}
	if got := failure(t, use(t, client, "get_language_details", args{"language": "cobol"})); got != `{"error":"Unsupported language: cobol"}` {
		t.Errorf("got = %v, want got = \"{\\\"error\\\":\\\"Unsupported language: cobol\\\"}\"", got)
	}

	got := decode[languageDetails](t, use(t, client, "get_language_details", args{"language": "py"}))
	if !strings.HasPrefix(got.Version, "Python 3.") || got.PackageManager != "pip" || !got.Visualization || !got.Stateful || len(got.UseCases) == 0 || len(got.Examples) < 2 {
		t.Errorf("%+v, want Version beginning with \"Python 3.\", PackageManager = \"pip\", Visualization true, Stateful true, UseCases not empty, len(got.Examples) >= 2", got)
	}
	var keys map[string]any
	if err := json.Unmarshal([]byte(text(t, use(t, client, "get_language_details", args{"language": "bash"}))), &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "package_manager", "preinstalled_libraries", "use_cases", "visualization_support", "examples"} {
		if keys[key] == nil {
			t.Errorf("%s is missing: %v, want keys[key] not nil", key, keys)
		}
	}
}

func TestAcceptance100Resource(t *testing.T) {
	client := connect(t, newServer(t, Config{Languages: []string{"bash", "python"}}), nil)
	res, err := client.ReadResource(testContext(t), &sdk.ReadResourceParams{URI: "sandbox://languages"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]languageDetails
	if err := json.Unmarshal([]byte(res.Contents[0].Text), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), []string{"bash", "python"}) || got["bash"].Version == "unknown" || got["python"].Version == "unknown" {
		t.Errorf("%+v, want [\"bash\" \"python\"], Version != \"unknown\", Version != \"unknown\"", got)
	}
	if res.Contents[0].MIMEType != "application/json" {
		t.Errorf("MIMEType = %v, want MIMEType = \"application/json\"", res.Contents[0].MIMEType)
	}
}

// installed reports whether this machine has a language's programs.
func onThisMachine(l *language.Language) bool {
	for _, alternatives := range l.Programs {
		if !slices.ContainsFunc(alternatives, func(p string) bool { _, err := exec.LookPath(p); return err == nil }) {
			return false
		}
	}
	return true
}

// Every example runs as it stands; the first is a greeting.
func TestExamplesRun(t *testing.T) {
	client := connect(t, newServer(t, Config{MaxCalls: 2}), nil)
	for _, l := range all.All() {
		if len(l.Details.Examples) < 2 {
			t.Errorf("%s has %d examples, want at least 2", l.Name, len(l.Details.Examples))
		}
	}
	var running sync.WaitGroup
	for _, l := range all.All() {
		if !onThisMachine(l) {
			t.Logf("%s is not on this machine", l.Name)
			continue
		}
		running.Go(func() {
			res := use(t, client, "get_language_details", args{"language": l.Name})
			for i, e := range decode[languageDetails](t, res).Examples {
				res := use(t, client, "execute_code", args{"code": e.Code, "language": l.Name, "timeout": 120})
				out := decode[outcome](t, res)
				if out.Status != "ok" || out.Stderr != "" {
					t.Errorf("%s: %s: %+v, want Status = \"ok\", Stderr empty", l.Name, e.Title, out)
				}
				if want := "Hello from " + l.Title + "!\n"; i == 0 && out.Stdout != want {
					t.Errorf("%s: %q, want %q", l.Name, out.Stdout, want)
				}
				if strings.Contains(e.Title, "plot") && len(res.Content) < 2 {
					t.Errorf("%s: %s: no picture, want Title without \"plot\" or len(res.Content) >= 2", l.Name, e.Title)
				}
			}
		})
	}
	running.Wait()
}
