package security

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func TestPresetsCompileAndConcernEveryLanguage(t *testing.T) {
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name || p.Description == "" || p.Threshold == Safe {
			t.Errorf("%s: got %q, %q, %v", name, p.Name, p.Description, p.Threshold)
		}
		c, err := Compile(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, l := range all.All() {
			r := c.rules[l.Name]
			own := len(r.modules) + len(r.names)
			for _, p := range r.patterns {
				if len(p.Languages) > 0 {
					own++
				}
			}
			if own == 0 {
				t.Errorf("%s has nothing for %s, want own != 0", name, l.Name)
			}
		}
	}
	if _, err := Preset("nobody"); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v, want ErrPolicy", err)
	}
}

func TestPresetsAreTheCallersOwn(t *testing.T) {
	a, _ := Preset("strict")
	a.Modules[0].Name, a.Modules[0].Languages[0] = "x", "y"
	if b, _ := Preset("strict"); b.Modules[0].Name == "x" || b.Modules[0].Languages[0] == "y" {
		t.Errorf("after a caller changed its copy the preset has %+v, want it unchanged", b.Modules[0])
	}
}

// How the policies differ, in Python.
func TestPresetsMeanWhatTheySay(t *testing.T) {
	refused := map[string]string{
		"import os\nos.system('x')":                "minimal development educational web_scraping data_science production strict",
		"x = 'rm -rf /'":                           "minimal development educational web_scraping data_science production strict",
		"import subprocess\nsubprocess.run(['x'])": "educational web_scraping data_science production strict",
		"import ctypes":                            "development educational web_scraping data_science production strict",
		"eval(x)":                                  "web_scraping data_science production strict",
		"import os\nos.remove('x')":                "educational web_scraping data_science production strict",
		"import socket":                            "web_scraping data_science production strict",
		"import socket\ns = socket.socket(type=socket.SOCK_RAW)": "educational web_scraping data_science production strict",
		"import requests\nrequests.get('http://a.example')":      "production strict",
		"import pickle":                       "web_scraping production strict",
		"open('x', 'w')":                      "production strict",
		"open('x', mode='ab')":                "production strict",
		"import os":                           "production strict",
		"import os\nprint(os.getenv('HOME'))": "web_scraping data_science production strict",
		"open('/etc/passwd')":                 "educational web_scraping data_science production strict",
		"open('x')":                           "strict",
		"getattr(x, n)":                       "production strict",
		"import time\ntime.sleep(1)":          "strict",
		"import importlib\nimportlib.import_module(x)": "production strict",
		"print('hi')": "",
		"def open(a, b): ...\nclass A:\n  def eval(self): return self\n": "",
	}
	var checkers []*Checker
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		checkers = append(checkers, c)
	}
	for code, want := range refused {
		var got []string
		for _, c := range checkers {
			r, err := c.Check(t.Context(), "python", []byte(code))
			if err != nil {
				t.Fatal(err)
			}
			if r.Blocked {
				got = append(got, c.policy.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is refused by %v, want %s", code, got, want)
		}
	}
}
