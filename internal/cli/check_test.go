package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/security"
)

// What code hosts read of SARIF 2.1.0: its version, rules that results refer to by index,
// levels, and places in files named by URIs.
func TestSARIF(t *testing.T) {
	report := security.Report{Policy: "p", Threshold: security.Medium, Blocked: true, Findings: []security.Finding{
		{Rule: "module:os", Severity: security.High, File: "a b/ü.py", Language: "python", Line: 2, Column: 3, EndLine: 2, EndColumn: 5, Code: "os", Reason: "it is restricted"},
		{Rule: "name:eval", Severity: security.Low, File: "-", Language: "python", Line: 1, Column: 1, EndLine: 1, EndColumn: 2, Code: "e", Reason: "it is told"},
		{Rule: "module:os", Severity: security.Medium, File: "x", Language: "python", Line: 1, Column: 1, EndLine: 3, EndColumn: 1, Code: "os", Reason: "again"},
		{Rule: "library:x", Severity: security.Safe, Language: "python", Code: "x==1", Reason: "a library"},
	}}
	data, err := json.Marshal(sarifOf(report, false))
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Invocations []struct {
				ExecutionSuccessful bool
				ExitCode            int
			}
			ColumnKind string
			Results    []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn, EndLine, EndColumn int }
					}
					LogicalLocations []struct{ Name, Kind string }
				}
			}
		}
	}
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 {
		t.Fatalf("got %s, want Version = \"2.1.0\", Schema not empty, len(log.Runs) = 1", data)
	}
	run := log.Runs[0]
	rules := run.Tool.Driver.Rules
	if run.Tool.Driver.Name != "llmsandbox" || len(rules) != 3 || run.ColumnKind != "unicodeCodePoints" || !run.Invocations[0].ExecutionSuccessful || run.Invocations[0].ExitCode != 126 {
		t.Errorf("got %s, want Name = \"llmsandbox\", len(rules) = 3, ColumnKind = \"unicodeCodePoints\", ExecutionSuccessful true, ExitCode = 126", data)
	}
	for i, want := range []struct {
		uri, level string
		line       int
	}{{"a%20b/%C3%BC.py", "error", 2}, {"stdin", "note", 1}, {"x", "warning", 1}, {"", "none", 0}} {
		r := run.Results[i]
		place := r.Locations[0].PhysicalLocation
		if r.Level != want.level || rules[r.RuleIndex].ID != r.RuleID || r.RuleID != report.Findings[i].Rule || r.Message.Text != report.Findings[i].Reason ||
			place.ArtifactLocation.URI != want.uri || place.Region.StartLine != want.line {
			t.Errorf("got %+v, want %+v", r, want)
		}
	}
	if l := run.Results[3].Locations[0].LogicalLocations; len(l) != 1 || l[0].Name != "x==1" {
		t.Errorf("got %+v, want len(l) = 1, Name = \"x==1\"", l)
	}
	abs, err := filepath.Abs("x y")
	if err != nil {
		t.Fatal(err)
	}
	if uri := fileURI(abs); uri[:8] != "file:///" || filepath.Base(uri) != "x%20y" {
		t.Errorf("got %s, want uri[:8] = \"file:///\", filepath.Base(uri) = \"x%%20y\"", uri)
	}
	data, err = json.Marshal(sarifOf(security.Report{Blocked: true}, true))
	if err != nil || !strings.Contains(string(data), `"exitCode":0`) || !strings.Contains(string(data), `"results":[]`) {
		t.Errorf("got %s, %v, want an exit code of 0 and no results", data, err)
	}
}
