package language

import (
	"bytes"
	"io"
	"path"
	"strings"
)

// A Renamer is a writer that puts, in what a run writes to stderr, the names that the caller
// knows in the place of the run's own file names, so that a traceback says main.py and is
// the same in every run. The files are called otherwise (see [Lay]) because runs may overlap.
// A name that is split between two calls of Write just behind its first character stays as
// it is: held back until the next call, a progress line of dots would come a dot late.
type Renamer struct {
	w      io.Writer
	hidden []byte // what the run's own names begin with
	ext    []byte // the main file's ending, where it is a file of its own
	name   string // the main file's name as it is to be read
	held   []byte // the end of what was written: it may be the beginning of a name
}

// NewRenamer returns a Renamer for the output of the run of src by plan.
func NewRenamer(w io.Writer, src Source, plan Plan) *Renamer {
	hidden := src.Private("")
	r := &Renamer{w: w, hidden: []byte(hidden), name: "main"}
	for _, f := range plan.Files {
		if ext, ok := strings.CutPrefix(path.Base(f.Path), hidden); ok {
			r.ext = []byte(ext)
			r.name += ext
			break
		}
	}
	if validName(src.Name) {
		r.name = src.Name
	}
	return r
}

// Write writes p under the names that the caller knows.
func (r *Renamer) Write(p []byte) (int, error) {
	text := p
	if len(r.held) > 0 {
		text = append(r.held, p...)
		r.held = nil
	}
	renamed, rest := r.rename(text, false)
	r.held = bytes.Clone(rest)
	if len(renamed) > 0 {
		if _, err := r.w.Write(renamed); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes what is held back. It is called when there is no more to come.
func (r *Renamer) Flush() error {
	text, _ := r.rename(r.held, true)
	r.held = nil
	if len(text) == 0 {
		return nil
	}
	_, err := r.w.Write(text)
	return err
}

// rename returns text under other names, up to where more of it is needed to say.
func (r *Renamer) rename(text []byte, all bool) (renamed, rest []byte) {
	for {
		at := bytes.Index(text, r.hidden)
		if at < 0 {
			break
		}
		behind := text[at+len(r.hidden):]
		if !all && len(behind) < max(len(r.ext), 1) && bytes.HasPrefix(r.ext, behind) {
			return append(renamed, text[:at]...), text[at:]
		}
		renamed = append(renamed, text[:at]...)
		switch {
		case len(r.ext) > 0 && bytes.HasPrefix(behind, r.ext):
			renamed = append(renamed, r.name...)
			behind = behind[len(r.ext):]
		case bytes.HasPrefix(behind, []byte("/")):
			behind = behind[1:] // a file in the run's directory
		default:
			renamed = append(renamed, strings.TrimSuffix(r.name, path.Ext(r.name))...) // the program
		}
		text = behind
	}
	if !all {
		for n := min(len(text), len(r.hidden)-1); n > 1; n-- {
			if end := len(text) - n; bytes.HasPrefix(r.hidden, text[end:]) {
				text, rest = text[:end], text[end:]
				break
			}
		}
	}
	if renamed == nil {
		return text, rest
	}
	return append(renamed, text...), rest
}
