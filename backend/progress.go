package backend

import "strings"

// Progress is a report of one long step. The first report of a Stage begins a step, later ones say
// how it goes on, and the one with Done is its last; where a call's context ends first, there may
// be none. One step may contain another of a different Stage: installing libraries may pull an image.
type Progress struct {
	// Stage is the kind of step: "pull", "build" or "load" of an image, "prepare" of a toolchain's
	// cache, "install" of libraries, "resolve" of their versions, "start" of a pod.
	Stage string
	// Message is what the step works on, such as an image or libraries.
	Message string
	// Current of Total are done: bytes of an image that is pulled, steps of one that is built.
	// Total is 0 where it is not known.
	Current, Total int64
	// Output is a line that the step's tool has printed, such as pip or go, without control
	// characters; empty in a report of anything else.
	Output string
	// Done says that the step has ended.
	Done bool
	// Error says why a step that is Done has failed; empty when it succeeded. Unless Stage is
	// "prepare", whose caches only save time, the call that waited for the step fails, too.
	Error string
}

// stages say what is done in a step, and what has been done.
var stages = map[string][2]string{
	"pull": {"Pulling", "Pulled"}, "build": {"Building", "Built"}, "load": {"Loading", "Loaded"},
	"prepare": {"Preparing", "Prepared"}, "install": {"Installing", "Installed"}, "resolve": {"Resolving", "Resolved"}, "start": {"Starting", "Started"},
}

// String says in a few words what is done, such as "Installing numpy", or has been done.
func (p Progress) String() string {
	verb, known := stages[p.Stage]
	if !known {
		verb = [2]string{p.Stage, p.Stage}
	}
	switch {
	case p.Error != "":
		return strings.TrimSpace(verb[0]+" "+p.Message) + " failed: " + p.Error
	case p.Done:
		return strings.TrimSpace(verb[1] + " " + p.Message)
	}
	return strings.TrimSpace(verb[0] + " " + p.Message)
}

// BeginStep reports that a step begins. The function that it returns reports the end, with the
// error that the step failed with, or nil. A nil report gets none.
func BeginStep(report func(Progress), stage, message string) (end func(error)) {
	if report == nil {
		return func(error) {}
	}
	p := Progress{Stage: stage, Message: message}
	report(p)
	return func(err error) { report(p.end(err)) }
}

// end is the last report of a step.
func (p Progress) end(err error) Progress {
	p.Done = true
	if err != nil {
		p.Error = err.Error()
	}
	return p
}
