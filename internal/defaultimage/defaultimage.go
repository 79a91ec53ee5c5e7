// Package defaultimage tells which image each language runs in on a container engine.
// Their Dockerfiles are in the directory images; see README.md there.
package defaultimage

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// A Default is what a language runs in unless another image is asked for.
type Default struct {
	// Name is the project's own image, built from the language's Dockerfile. It runs
	// as an ordinary user and has the usual libraries. For a language that a file declares it is Official.
	Name string
	// Official is the image it is built on. It runs the language, without the
	// libraries, where the engine has no image of that Name.
	Official string
}

// official are the bases, one a language. Each has what the language's Programs name.
var official = map[string]string{
	"bash":       "debian:bookworm-slim",
	"cpp":        "gcc:14-bookworm",
	"go":         "golang:1.26-bookworm",
	"java":       "maven:3-eclipse-temurin-21",
	"javascript": "node:22-bookworm-slim",
	"python":     "python:3.13-slim-bookworm",
	"r":          "r-base:4.5.1",
	"ruby":       "ruby:3.4-slim-bookworm",
}

// For returns the default of a language by its canonical name, such as "python", and
// whether there is one.
func For(name string) (Default, bool) {
	family := language.Family(name)
	base, ok := official[family]
	if !ok {
		l, err := all.Get(name)
		if err != nil || l.Name != name || l.Image == "" {
			return Default{}, false
		}
		return Default{Name: l.Image, Official: l.Image}, true
	}
	return Default{Name: "llmsandbox/" + family + ":1", Official: base}, true
}
