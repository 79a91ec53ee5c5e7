package all

import (
	"strings"
	"testing"
)

func TestFindMissing(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, c := range []struct{ lang, text, library, file string }{
		{"python", "Traceback:\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'matplotlib'\n", "matplotlib", ""},
		{"python", "ModuleNotFoundError: No module named 'yaml.nodes'; 'yaml' is not a package", "pyyaml", ""},
		{"python", "No module named 'cv2'", "opencv-python-headless", ""},
		{"python", "No module named 'sklearn.linear_model'", "scikit-learn", ""},
		{"python", "No module named 'google.cloud.storage'", "google-cloud-storage", ""},
		{"python", "No module named 'google.other'", "", ""},
		{"python", "/usr/bin/python3: No module named pytest", "pytest", ""},
		{"python", "ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.", "openpyxl", ""},
		{"python", "No module named 'a'\nNo module named 'b'\nmore", "b", ""},
		{"python", "No module named '_sqlite3'", "", ""},
		{"python", "No module named 'tkinter'", "", ""},
		// What is no name is none, whatever it is.
		{"python", "No module named '\x1b[2Jx'", "", ""},
		{"python", "No module named 'a b'", "", ""},
		{"python", "No module named 'a'; rm -rf /'", "a", ""},
		{"python", "No module named '--index-url=http://evil.test'", "", ""},
		{"python", "No module named '" + long + "'", "", ""},
		{"python", "No module named 'ｎumpy'", "", ""},
		{"python", "No module named ''", "", ""},
		{"javascript", "Error: Cannot find module 'lodash/fp'\nRequire stack:\n- /sandbox/main.js", "lodash", ""},
		{"javascript", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@types/node' imported from /sandbox/main.mjs", "@types/node", ""},
		{"javascript", "Error: Cannot find module './helper'", "", "helper"},
		{"javascript", "Error: Cannot find module '/sandbox/lib/helper.js'", "", "helper.js"},
		{"javascript", "Error: Cannot find module '..'", "", ""},
		{"ruby", "main.rb:1:in `require': cannot load such file -- nokogiri (LoadError)\n\tfrom main.rb", "nokogiri", ""},
		{"ruby", "LoadError: cannot load such file -- active_support/all", "activesupport", ""},
		{"ruby", "in `require_relative': cannot load such file -- /sandbox/helper (LoadError)", "", "helper"},
		{"r", "Error in library(ggplot2) : there is no package called ‘ggplot2’", "ggplot2", ""},
		{"r", "there is no package called 'data.table'", "data.table", ""},
		{"java", "/sandbox/Main.java:1: error: package com.google.gson does not exist", "com.google.code.gson:gson", ""},
		{"java", "error: package com.fasterxml.jackson.databind does not exist", "com.fasterxml.jackson.core:jackson-databind", ""},
		{"java", "error: package my.own does not exist", "", ""},
		{"go", "main.go:2:8: cannot find module providing package github.com/google/uuid: module lookup disabled by GOPROXY=off", "github.com/google/uuid", ""},
		{"go", "main.go:3:2: no required module provides package golang.org/x/text/language; to add it:", "golang.org/x/text/language", ""},
		{"go", "cannot find module providing package helper", "", ""},
		{"cpp", "main.cpp:1:10: fatal error: fmt/core.h: No such file or directory", "libfmt-dev", ""},
		{"cpp", "error: 'nlohmann/json.hpp' file not found", "nlohmann-json3-dev", ""},
		{"cpp", "fatal error: helper.h: No such file or directory", "", "helper.h"},
		{"c", "main.c:1:10: fatal error: zlib.h: No such file or directory", "zlib1g-dev", ""},
		{"cpp", "fatal error: .-: No such file or directory", "", ""},
		{"bash", "main.sh: line 2: jq: command not found", "jq", ""},
		{"bash", "main.sh: line 2: frobnicate: command not found", "", ""},
		{"bash", "", "", ""},
	} {
		l, err := Get(c.lang)
		if err != nil {
			t.Fatal(err)
		}
		library, file := l.FindMissing(c.text)
		if library != c.library || file != c.file {
			t.Errorf("%s: %q: library %q, file %q, want %q and %q", c.lang, c.text, library, file, c.library, c.file)
		}
	}
}

// The libraries that a module has are ones that the language would install.
func TestMissingLibraries(t *testing.T) {
	for _, l := range All() {
		if l.Missing == nil {
			continue
		}
		for module, library := range l.Missing.Libraries {
			if library == "" {
				continue
			}
			if _, err := l.Libraries.Check(library); err != nil {
				t.Errorf("%s: %s: %v", l.Name, module, err)
			}
		}
	}
}
