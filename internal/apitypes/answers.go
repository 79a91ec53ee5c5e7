package apitypes

import "time"

// A FileEntry is a file, directory or link of a sandbox.
type FileEntry struct {
	Name     string    `json:"name" doc:"Its base name"`
	Type     string    `json:"type" enum:"file,directory,link,other"`
	Size     int64     `json:"size_bytes"`
	Mode     string    `json:"mode" doc:"Permissions in octal" example:"0644"`
	Modified time.Time `json:"modified"`
	Link     string    `json:"link,omitempty" doc:"Where a link leads to"`
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
