package apitypes

import (
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// A FileEntry is a file, directory or link of a sandbox.
type FileEntry struct {
	Name     string    `json:"name" doc:"Its base name"`
	Type     string    `json:"type" enum:"file,directory,link,other"`
	Size     int64     `json:"size_bytes"`
	Mode     string    `json:"mode" doc:"Permissions in octal" example:"0644"`
	Modified time.Time `json:"modified"`
	Link     string    `json:"link,omitempty" doc:"Where a link leads to"`
}

// Files are the entries of a directory.
type Files struct {
	Entries []FileEntry `json:"entries" nullable:"false"`
}

// An Unpacked tells what was unpacked of an archive.
type Unpacked struct {
	Files   int64    `json:"files" doc:"Regular files"`
	Bytes   int64    `json:"bytes" doc:"Of their content"`
	Skipped []string `json:"skipped,omitempty" doc:"What was left out, each with its reason, at most 100"`
}

// SkippedTrailer is the trailer of an archive that says how much was left out of it.
const SkippedTrailer = "Llmsandbox-Skipped"

// A FileChange is what happened to a file or directory.
type FileChange struct {
	Op   llmsandbox.FileOp `json:"op" enum:"create,write,remove,rename,chmod,overflow" doc:"rename: it had this path; overflow: changes were lost, so look again"`
	Path string            `json:"path" doc:"Absolute"`
	Dir  bool              `json:"dir,omitempty" doc:"It is a directory's"`
}

// A SandboxChange is what happened to one of a project's sandboxes.
type SandboxChange struct {
	Op      string  `json:"op" enum:"create,change,remove" doc:"remove: it has ended, or was removed"`
	Sandbox Sandbox `json:"sandbox" doc:"As it is now, or was last"`
}

// A NewURL asks for a URL that reads or writes a file without a key.
type NewURL struct {
	Path    string  `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute, or relative to the working directory" example:"data.csv"`
	Method  string  `json:"method" enum:"GET,PUT" doc:"What it is good for: to read the file, or to write it"`
	Seconds float64 `json:"expires_seconds" minimum:"1" maximum:"86400" doc:"For how long" example:"600"`
}

// A SignedURL reads or writes a file without a key.
type SignedURL struct {
	URL     string    `json:"url" doc:"Whoever has it can use it"`
	Expires time.Time `json:"expires" doc:"Until when"`
}

// A Problem is the body of every answer that is no success, as RFC 9457 has it.
type Problem struct {
	Title  string `json:"title" doc:"What the status means"`
	Status int    `json:"status" doc:"The HTTP status" minimum:"400" maximum:"599"`
	Code   string `json:"code" doc:"What went wrong, for programs" example:"not_found"`
	Detail string `json:"detail" doc:"What failed, why, and what to do"`
	// Fields are what was wrong with which part of the request.
	Fields []Field `json:"fields,omitempty" doc:"What is wrong with which parts of the request"`
}

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// A Field is a part of a request, such as body.limits.cpus, and what is wrong with it.
type Field struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// A Language is one that code can be written in.
type Language struct {
	Name       string   `json:"name" example:"python"`
	Title      string   `json:"title" example:"Python"`
	Aliases    []string `json:"aliases,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
}

// Languages are those of a server.
type Languages struct {
	Languages []Language `json:"languages" nullable:"false"`
}

// All is a list as another one, which is never nil: JSON has no null for it.
func All[A, B any](list []A, as func(A) B) []B {
	all := make([]B, len(list))
	for i, one := range list {
		all[i] = as(one)
	}
	return all
}
