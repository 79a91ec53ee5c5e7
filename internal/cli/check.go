package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
	"github.com/llmsandbox/llmsandbox/security/policyfile"
)

// checkFlags are the flags of `check`.
type checkFlags struct {
	policy    string
	lang      string
	libraries []string
	json      bool
	sarif     bool
	warn      bool
	list      bool
	print     string
	schema    bool
}

func newCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check --policy NAME|FILE [flags] FILE|DIR|-...",
		Short: "Scan code against a security policy without running it",
		Long: `Scan code against a security policy. The code does not run, and no sandbox is needed.

A policy is a built-in one (--list), or a YAML or JSON file (--schema). To write your own,
start from a built-in policy: llmsandbox check --print production >policy.yaml

A policy is advisory, because a scan cannot be sure what code does. The sandbox enforces
the limits.

Exit codes: 0 if nothing is refused, 126 if something is, 125 if the check itself failed.`,
		Example: `  llmsandbox check --policy production script.py
  llmsandbox check --policy policy.yaml --lib requests==2.32 src/*.js
  echo 'eval("1")' | llmsandbox check --policy strict -l python -
  llmsandbox check --policy production --sarif main.go >findings.sarif`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.check(cmd.Context(), args) },
	}
	set := cmd.Flags()
	set.StringVar(&f.policy, "policy", "", "check against this `POLICY`: a built-in name, or a YAML or JSON file")
	set.StringVarP(&f.lang, "lang", "l", "", "`LANGUAGE` of the code (default: from the file, otherwise python)")
	registerLanguageFile(set, new([]string))
	set.StringArrayVar(&f.libraries, "lib", nil, "also check this `LIBRARY`, as if installed with run --lib (repeatable)")
	set.BoolVar(&f.json, "json", false, "print the findings as one JSON object")
	set.BoolVar(&f.sarif, "sarif", false, "print the findings as SARIF 2.1.0, for code hosts and editors")
	set.BoolVar(&f.warn, "warn", false, "report findings, but exit with 0")
	set.BoolVar(&f.list, "list", false, "list the built-in policies")
	set.StringVar(&f.print, "print", "", "print a policy as YAML: `POLICY` is a built-in name or a file")
	set.BoolVar(&f.schema, "schema", false, "print the JSON Schema of policy files")
	setOnlyHere(set, "list", "print", "schema")
	cmd.MarkFlagsMutuallyExclusive("json", "sarif")
	cmd.MarkFlagsMutuallyExclusive("list", "print", "schema", "policy")
	return cmd
}

func (f *checkFlags) check(ctx context.Context, args []string) error {
	switch {
	case f.list:
		return listPolicies()
	case f.schema:
		_, err := os.Stdout.WriteString(policyfile.Schema)
		return err
	case f.print != "":
		return printPolicy(f.print)
	case f.policy == "":
		return errors.New("which policy? give --policy NAME or a file; `llmsandbox check --list` has the built-in ones")
	case len(args) == 0 && len(f.libraries) == 0:
		return errors.New("nothing to check: give a FILE, a directory, '-' for standard input, or --lib")
	}
	checker, err := policyfile.Load(f.policy)
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	programs, notebooks, err := f.programs(ctx, args)
	if err != nil {
		return err
	}
	report, err := checkAll(ctx, checker, programs, notebooks, nil)
	if err != nil {
		return err
	}
	for _, n := range notebooks {
		programs = append(programs, n.programs()...)
	}
	if err := f.tell(report, programs); err != nil {
		return err
	}
	if report.Blocked && !f.warn {
		return exitCode(exitRefused)
	}
	return nil
}

// programs are what the arguments name; the libraries go with the first.
func (f *checkFlags) programs(ctx context.Context, args []string) (programs []security.Program, notebooks []notebookFile, err error) {
	var files []string
	for _, arg := range args {
		if info, err := os.Stat(arg); arg == "-" || err != nil || !info.IsDir() {
			files = append(files, arg)
			continue
		}
		p, notebooks, err := directoryProgram(arg, cmp.Or(f.lang, llmsandbox.DefaultLanguage))
		if err != nil {
			return nil, nil, err
		}
		programs, files = append(programs, p), append(files, notebooks...)
	}
	for _, arg := range files {
		src, err := loadSource(ctx, arg, "", false, f.lang)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range src.notebooks {
			n.name = arg
			notebooks = append(notebooks, n)
		}
		if len(src.notebooks) > 0 {
			continue
		}
		programs = append(programs, security.Program{Language: cmp.Or(f.lang, src.lang, llmsandbox.DefaultLanguage), Name: arg, Code: []byte(src.code)})
	}
	if len(programs) == 0 && len(notebooks) > 0 {
		programs = append(programs, security.Program{Language: notebooks[0].lang})
	}
	if len(programs) == 0 {
		programs = append(programs, security.Program{Language: cmp.Or(f.lang, llmsandbox.DefaultLanguage)})
	}
	lang, err := all.Get(programs[0].Language)
	if err != nil {
		return nil, nil, err
	}
	for _, library := range f.libraries {
		// What cannot be a library is none that a policy could judge.
		if lang.Libraries != nil {
			if _, err := lang.Libraries.Check(library); err != nil {
				return nil, nil, fmt.Errorf("--lib: %w", err)
			}
		}
	}
	programs[0].Libraries = f.libraries
	return programs, notebooks, nil
}

// checkAll is one report on all programs and notebooks. The libraries go with the first notebook.
func checkAll(ctx context.Context, checker *security.Checker, programs []security.Program, notebooks []notebookFile, libraries []string) (security.Report, error) {
	var reports []security.Report
	for _, p := range programs {
		r, err := checker.CheckProgram(ctx, p)
		if err != nil {
			return r, err
		}
		reports = append(reports, r)
	}
	for _, n := range notebooks {
		r, err := n.check(ctx, checker, libraries)
		if err != nil {
			return r, err
		}
		reports, libraries = append(reports, r), nil
	}
	sum := reports[0]
	for _, r := range reports[1:] {
		sum.Findings = append(sum.Findings, r.Findings...)
		sum.Omitted += r.Omitted
		sum.Blocked = sum.Blocked || r.Blocked
	}
	return sum, nil
}

func (f *checkFlags) tell(report security.Report, programs []security.Program) error {
	switch {
	case f.json:
		return printJSON(report)
	case f.sarif:
		return printJSON(sarifOf(report, f.warn))
	}
	return printReport(os.Stdout, report, linesOf(programs...))
}

// policyFlags are the flags of commands that check code before they run it.
type policyFlags struct {
	policy string
	warn   bool
}

func (f *policyFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.policy, "policy", "", "check the code against `POLICY` first: a built-in name or a file")
	set.BoolVar(&f.warn, "policy-warn", false, "with --policy, report what it refuses, but run the code")
}

func (f *policyFlags) options() (llmsandbox.Policy, error) {
	p := llmsandbox.Policy{WarnOnly: f.warn}
	if f.policy == "" {
		if f.warn {
			return p, fmt.Errorf("--policy-warn: there is no --policy to warn by")
		}
		return p, nil
	}
	var err error
	if p.Checker, err = policyfile.Load(f.policy); err != nil {
		return p, fmt.Errorf("--policy: %w", err)
	}
	return p, nil
}

// listPolicies prints the built-in policies.
func listPolicies() error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "POLICY\tREFUSES FROM\tCOMPUTED\tWHAT IT IS")
	for _, name := range security.Presets() {
		p, err := security.Preset(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\n", name, p.Threshold, p.Computed, p.Description)
	}
	return w.Flush()
}

// printPolicy prints a policy as a file to start from, checked.
func printPolicy(nameOrPath string) error {
	checker, err := policyfile.Load(nameOrPath)
	if err != nil {
		return fmt.Errorf("--print: %w", err)
	}
	text, err := policyfile.Format(checker.Policy())
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// printReport tells findings as a compiler tells errors.
func printReport(to io.Writer, report security.Report, lines codeLines) error {
	w := bufio.NewWriter(to)
	p := findingPrinter{w: w, to: to, lines: lines}
	count := map[security.Severity]int{}
	for _, f := range report.Findings {
		count[f.Severity]++
		p.print(f)
	}
	verdict := paint(to, green, "passed")
	if report.Blocked {
		verdict = paint(to, red, "refused")
	}
	by := "policy " + termsafe.String(report.Policy)
	if report.Policy == "" {
		by = "policy without a name"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", verdict, by, counts(count, report))
	return w.Flush()
}

func counts(count map[security.Severity]int, report security.Report) string {
	total := len(report.Findings) + report.Omitted
	if total == 0 {
		return "nothing found"
	}
	var parts []string
	for s := security.High; s >= security.Safe; s-- {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", count[s], s))
		}
	}
	if report.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("%d not shown", report.Omitted))
	}
	refuses := fmt.Sprintf("; it refuses from %v on", report.Threshold)
	if report.Threshold == security.Safe {
		refuses = "; it refuses nothing"
	}
	return fmt.Sprintf("%d found: %s%s", total, strings.Join(parts, ", "), refuses)
}

// An object is one of JSON.
type object map[string]any

// sarifOf is a report as SARIF 2.1.0 (OASIS): what that asks for of a static analysis, and no more.
func sarifOf(report security.Report, warn bool) object {
	code := 0
	if report.Blocked && !warn {
		code = exitRefused
	}
	rules, results := []object{}, []object{}
	known := map[string]int{}
	for _, f := range report.Findings {
		index, ok := known[f.Rule]
		if !ok {
			index = len(rules)
			known[f.Rule] = index
			rules = append(rules, object{"id": f.Rule, "shortDescription": object{"text": f.Reason}})
		}
		results = append(results, object{
			"ruleId": f.Rule, "ruleIndex": index, "level": sarifLevel(f.Severity), "message": object{"text": f.Reason},
			"locations":  []object{sarifPlace(f)},
			"properties": object{"severity": f.Severity.String(), "language": f.Language, "policy": report.Policy},
		})
	}
	return object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "llmsandbox", "semanticVersion": version, "rules": rules}},
			"invocations": []object{{"executionSuccessful": true, "exitCode": code}},
			"columnKind":  "unicodeCodePoints",
			"results":     results,
		}},
	}
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

func sarifPlace(f security.Finding) object {
	if f.Line == 0 {
		return object{"logicalLocations": []object{{"name": f.Code, "kind": "package"}}}
	}
	return object{"physicalLocation": object{
		"artifactLocation": object{"uri": fileURI(f.File)},
		"region": object{
			"startLine": f.Line, "startColumn": f.Column, "endLine": f.EndLine, "endColumn": f.EndColumn,
			"snippet": object{"text": f.Code},
		},
	}}
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
