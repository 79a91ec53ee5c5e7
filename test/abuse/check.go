package abuse

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An Outcome is what a test saw of a run.
type Outcome struct {
	Status         string
	Stdout, Stderr string
	Error          string // the result's
	Duration       time.Duration
	// Processes are the command lines of what was left running.
	Processes []string
}

// A Report is one line that a program prints: what it tried and how that ended,
// "ok" or the name of an error.
type Report struct {
	Case   int    `json:"case"`
	What   string `json:"what"`
	Result string `json:"result"`
}

var deniedByDefault = []string{"EPERM", "EACCES", "ENOSYS"}

// Check returns all that is wrong with an outcome, or nil. Hidden are texts of
// the host (its name, its directories) that must not appear, besides Canary.
func (c Case) Check(o Outcome, hidden ...string) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if o.Status != c.Want.Status && !slices.ContainsFunc(c.Want.Or, func(e End) bool {
		return e.Status == o.Status && regexp.MustCompile(e.Says).MatchString(strings.Join([]string{o.Stdout, o.Stderr, o.Error}, "\n"))
	}) {
		fail("status is %q, want %q or %+v", o.Status, c.Want.Status, c.Want.Or)
	}
	if c.Want.Within > 0 && o.Duration > c.Want.Within {
		fail("took %v, want at most %v", o.Duration, c.Want.Within)
	}
	if c.Want.Denied {
		errs = append(errs, c.checkReports(o.Stdout)...)
	}
	for _, p := range c.Want.Output {
		if o.Status == c.Want.Status && !regexp.MustCompile(p).MatchString(o.Stdout) {
			fail("stdout does not match %q", p)
		}
	}
	both := o.Stdout + "\n" + o.Stderr
	for _, p := range c.Want.Never {
		if m := regexp.MustCompile(p).FindString(both); m != "" {
			fail("output has %q", m)
		}
	}
	for _, text := range append([]string{Canary}, hidden...) {
		if text != "" && strings.Contains(both, text) {
			fail("output reveals %q", text)
		}
	}
	if c.Want.Gone != "" {
		for _, p := range o.Processes {
			if strings.Contains(p, c.Want.Gone) {
				fail("a process is left: %q", p)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("case %d, %s: %w", c.Number, c.Name, err)
	}
	return nil
}

// checkReports fails for each try that was not denied, and when the program did
// not get to its end: what was never tried was not denied either.
func (c Case) checkReports(stdout string) []error {
	accepted := c.Want.Results
	if len(accepted) == 0 {
		accepted = deniedByDefault
	}
	var errs []error
	tries, ended := 0, false
	for line := range strings.Lines(stdout) {
		var r Report
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Case != c.Number {
			errs = append(errs, fmt.Errorf("not a report: %q", line))
			continue
		}
		if ended = r.Result == "end"; ended {
			continue
		}
		tries++
		if !slices.Contains(accepted, r.Result) {
			errs = append(errs, fmt.Errorf("%s: %s, want one of %q", r.What, r.Result, accepted))
		}
	}
	if tries == 0 || !ended {
		errs = append(errs, fmt.Errorf("the program reported %d tries and did not reach its end: %v", tries, ended))
	}
	return errs
}
