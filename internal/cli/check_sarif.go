package cli

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/security"
)

// What SARIF 2.1.0 (OASIS) asks for of a static analysis, and no more.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifDriver struct {
		Name            string      `json:"name"`
		SemanticVersion string      `json:"semanticVersion"`
		Rules           []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   string    `json:"id"`
		Text sarifText `json:"shortDescription"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
		ExitCode            int  `json:"exitCode"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID     string            `json:"ruleId"`
		RuleIndex  int               `json:"ruleIndex"`
		Level      string            `json:"level"`
		Message    sarifText         `json:"message"`
		Locations  []sarifLocation   `json:"locations"`
		Properties map[string]string `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine   int       `json:"startLine"`
			StartColumn int       `json:"startColumn"`
			EndLine     int       `json:"endLine"`
			EndColumn   int       `json:"endColumn"`
			Snippet     sarifText `json:"snippet"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
)

// sarifOf is a report as SARIF.
func sarifOf(report security.Report, warn bool) sarifLog {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "llmsandbox", SemanticVersion: version, Rules: []sarifRule{}}
	done := sarifInvocation{ExecutionSuccessful: true}
	if report.Blocked && !warn {
		done.ExitCode = exitRefused
	}
	run.Invocations = []sarifInvocation{done}
	rules := map[string]int{}
	for _, f := range report.Findings {
		index, known := rules[f.Rule]
		if !known {
			index = len(rules)
			rules[f.Rule] = index
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{f.Rule, sarifText{f.Reason}})
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: index, Level: sarifLevel(f.Severity), Message: sarifText{f.Reason},
			Locations:  []sarifLocation{sarifPlace(f)},
			Properties: map[string]string{"severity": f.Severity.String(), "language": f.Language, "policy": report.Policy},
		})
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

func sarifLevel(s security.Severity) string {
	switch s {
	case security.High:
		return "error"
	case security.Medium:
		return "warning"
	case security.Low:
		return "note"
	}
	return "none"
}

func sarifPlace(f security.Finding) sarifLocation {
	if f.Line == 0 {
		return sarifLocation{Logical: []sarifLogical{{f.Code, "package"}}}
	}
	p := &sarifPhysical{}
	p.Artifact.URI = fileURI(f.File)
	p.Region.StartLine, p.Region.StartColumn, p.Region.EndLine, p.Region.EndColumn = f.Line, f.Column, f.EndLine, f.EndColumn
	p.Region.Snippet.Text = f.Code
	return sarifLocation{Physical: p}
}

// fileURI is a file's name as a URI: relative names stay relative to where we are.
func fileURI(name string) string {
	slashed := filepath.ToSlash(name)
	if name == "-" {
		slashed = "stdin"
	}
	u := url.URL{Path: slashed}
	if filepath.IsAbs(name) {
		u = url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}
	}
	return u.String()
}
