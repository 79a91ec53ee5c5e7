package backendtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// ofRegistries are libraries as people use them, out of the registries that the machine's
// tools, or an image's, are configured for.
var ofRegistries = []struct {
	language  string
	tool      string // what installs; where it is not there that is the answer
	libraries []string
	code      string
	want      string
	missing   string // a library that does not exist; empty where that is tried already
}{
	// Pure and compiled, with a command.
	{"python", "pip3", []string{"six==1.16.0", "MarkupSafe==2.1.5", "pyjokes"}, `
import six, markupsafe._speedups, subprocess
print(six.__version__, markupsafe.__version__, subprocess.run(["pyjoke"], capture_output=True).returncode)`, "1.16.0 2.1.5 0\n", "llmsandbox-no-such-package"},
	// With a dependency, with a scope, as a module and by require.
	{"javascript", "npm", []string{"is-odd@3.0.1", "@sindresorhus/is@4.6.0"}, `
import isOdd from 'is-odd'
import is from '@sindresorhus/is'
import { createRequire } from 'node:module'
console.log(isOdd(3), is.default('x'), createRequire(import.meta.url)('is-odd')(2))
try { await import('llmsandbox-none') } catch (e) { console.log(e.code) }`, "true string false\nERR_MODULE_NOT_FOUND\n", "llmsandbox-no-such-package"},
	// With what it depends on in turn.
	{"java", "mvn", []string{"org.apache.commons:commons-text:1.11.0"}, `
import org.apache.commons.lang3.StringUtils;
import org.apache.commons.text.WordUtils;
public class Main { public static void main(String[] a) { System.out.println(StringUtils.reverse("cba") + WordUtils.capitalize("x y")); } }`, "abcX Y\n", "llmsandbox.invalid:none:1.0"},
	{"go", "go", []string{"github.com/google/uuid@v1.6.0", "golang.org/x/mod@v0.20.0"}, `package main

import (
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/mod/semver"
)

func main() { fmt.Println(uuid.Nil, semver.Compare("v1.2.0", "v1.10.0")) }`, "00000000-0000-0000-0000-000000000000 -1\n", "golang.org/x/llmsandbox-no-such-module"},
	// A shared library that has to be linked, headers, and one that only pkg-config finds.
	{"cpp", "apt-get", []string{"libfmt-dev", "libjsoncpp-dev", "nlohmann-json3-dev"}, `
#include <fmt/core.h>
#include <jsoncpp/json/json.h>
#include <nlohmann/json.hpp>
int main() { Json::Value v; v["a"] = 1; fmt::print("{} {} {}\n", 42, v["a"].asInt(), nlohmann::json::parse("[3]")[0].get<int>()); }`, "42 1 3\n", "llmsandbox-no-such-package"},
	{"bash", "apt-get", []string{"jq"}, `echo '{"a": [1, 2]}' | jq -c .a; case $(command -v jq) in "$SANDBOX_LIBRARIES"/*) echo own; esac`, "[1,2]\nown\n", ""},
}

func (s *suite) acceptance28LibrariesOfRegistries(t *testing.T) {
	s.has(t, Libraries, Registries)
	for _, c := range ofRegistries {
		t.Run(c.language, func(t *testing.T) {
			s.has(t, Feature(c.language))
			if !hasProgram(t, s.open(t, llmsandbox.Options{Language: c.language}), c.tool) {
				require(t, s.Backend.Name() != "local" || s.Image != nil, c.tool+" is not installed on this machine")
				err := s.openError(t, llmsandbox.Options{Language: c.language, Libraries: c.libraries})
				if !errors.Is(err, llmsandbox.ErrToolchain) || !strings.Contains(err.Error(), c.tool) {
					t.Errorf("a place without %s: %v", c.tool, err)
				}
				return
			}
			s.forgetLibraries(t, c.libraries[0])
			if c.missing != "" {
				s.isNowhere(t, c.language, c.missing)
			}
			o := llmsandbox.Options{Language: c.language, Libraries: c.libraries}
			wantStdout(t, run(t, s.open(t, o), c.code, nil), c.want)
			o.Install.Offline = true
			wantStdout(t, run(t, s.open(t, o), c.code, nil), c.want)
		})
	}
}

// isNowhere asks for a library that does not exist.
func (s *suite) isNowhere(t *testing.T, language, library string) {
	t.Helper()
	err := s.openError(t, llmsandbox.Options{Language: language, Libraries: []string{library}})
	require(t, err == nil || !strings.Contains(err.Error(), "could not reach"), "the registries cannot be reached from here")
	var failed *llmsandbox.InstallError
	if !errors.As(err, &failed) || failed.Status != llmsandbox.StatusError || failed.Output == "" {
		t.Errorf("a library that does not exist: %v, want an error of type %T, Status = StatusError, Output not empty", err, failed)
	}
}

// openError is why a sandbox cannot be opened.
func (s *suite) openError(t *testing.T, o llmsandbox.Options) error {
	t.Helper()
	o = s.options(o)
	o.BestEffort = true
	sb, err := llmsandbox.Open(testContext(t), &o)
	if err == nil {
		t.Errorf("opened with %q, want an error", o.Libraries)
		return sb.Close()
	}
	return err
}

// forgetLibraries removes the layers that have a library, now and when the test ends.
func (s *suite) forgetLibraries(t *testing.T, library string) {
	t.Helper()
	kept := s.layers(t)
	forget := func() {
		layers, err := kept.List(testContext(t))
		if err != nil {
			t.Error(err)
		}
		for _, l := range layers {
			if slices.Contains(l.Libraries, strings.ToLower(library)) || slices.Contains(l.Libraries, library) {
				settles(t, func() error { return kept.Remove(testContext(t), l.Key) })
			}
		}
	}
	forget()
	t.Cleanup(forget)
}
