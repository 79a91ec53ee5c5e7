package security

// maxFindings is how many findings a report has.
const maxFindings = 1000

// A Report is what a check has found.
type Report struct {
	// Policy is the policy's name, and Threshold its threshold.
	Policy    string   `json:"policy,omitempty"`
	Threshold Severity `json:"severity_threshold"`
	// Blocked reports whether the policy refuses the code.
	Blocked bool `json:"blocked"`
	// Findings are what was found, in the order of the code, of the same place the worst
	// first. The first one that refuses the code is always among them.
	Findings []Finding `json:"findings"`
	// Omitted is how many more there were: a report has up to 1000.
	Omitted int `json:"omitted,omitempty"`
}

// A Finding is one place in code, or one library, that a policy names.
type Finding struct {
	// Rule is what names it: "module:os", "name:os.system", "pattern:...",
	// "computed:import", "library:requests"; or "unreadable" for code that could not be
	// looked at, or not to its end.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is the file's name where several were checked, or empty.
	File string `json:"file,omitempty"`
	// Language is what the code is written in.
	Language string `json:"language"`
	// Line and Column, from 1, tell where it begins, EndLine and EndColumn the place behind
	// it; columns count characters. They are 0 for a library.
	Line      int `json:"line,omitempty"`
	Column    int `json:"column,omitempty"`
	EndLine   int `json:"end_line,omitempty"`
	EndColumn int `json:"end_column,omitempty"`
	// Code is the text that was found, up to 120 characters on one line, without control
	// sequences.
	Code string `json:"code"`
	// Reason is a sentence on what it is and why the policy names it.
	Reason string `json:"reason"`
}

// report judges findings, which are in order.
func (c *Checker) report(findings []Finding) Report {
	r := Report{Policy: c.policy.Name, Threshold: c.policy.Threshold, Findings: []Finding{}}
	for _, f := range findings {
		decides := !r.Blocked && r.refuses(f)
		r.Blocked = r.Blocked || decides
		if len(r.Findings) < maxFindings || decides {
			r.Findings = append(r.Findings, f)
		} else {
			r.Omitted++
		}
	}
	return r
}

func (r Report) refuses(f Finding) bool { return r.Threshold > Safe && f.Severity >= r.Threshold }

// Violations are the first finding that refuses the code and the lower ones before it; all
// findings where none does.
func (r Report) Violations() []Finding {
	for i, f := range r.Findings {
		if r.refuses(f) {
			return r.Findings[:i+1]
		}
	}
	return r.Findings
}
