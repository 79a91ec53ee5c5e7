package security_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/security"
)

func found(r security.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%d:%d %v %s", f.Line, f.Column, f.Severity, f.Rule))
	}
	return list
}

// A finding at the threshold refuses, one below it does not.
func TestAcceptance84Thresholds(t *testing.T) {
	p := security.Policy{Threshold: security.Medium, Names: []security.RestrictedName{
		{Name: "os.system", Description: "runs a command", Severity: security.High}, {Name: "eval", Severity: security.Medium},
	}}
	c := compiled(t, p)
	r := check(t, c, "python", []byte("import os\nos.system('ls')\n"))
	if v := r.Violations(); !r.Blocked || len(v) != 1 || v[0].Severity != security.High || v[0].Reason != "os.system is restricted: runs a command" || v[0].Line != 2 || v[0].Code != "os.system" {
		t.Errorf("got %+v, want Blocked true, len(v) = 1, Severity = High, Reason = \"os.system is restricted: runs a command\", Line = 2, Code = \"os.system\"", r)
	}
	for threshold, blocked := range map[security.Severity]bool{security.Low: true, security.Medium: true, security.High: false} {
		p.Threshold = threshold
		if r := check(t, compiled(t, p), "python", []byte("eval('1')")); r.Blocked != blocked || len(r.Findings) != 1 {
			t.Errorf("%v: got %+v, want Blocked = %v, len(r.Findings) = 1", threshold, r, blocked)
		}
	}
}

func TestAcceptance85WhatIsNoCodePasses(t *testing.T) {
	c := restrictive(t, "python")
	for _, code := range []string{"# import os\nprint(1)", "\"\"\"\nimport os\n\"\"\"", "'''import os'''", "x = 'import os'", "def f():\n    '''\n    import os\n    '''\n"} {
		if r := check(t, c, "python", []byte(code)); r.Blocked || len(r.Findings) > 0 {
			t.Errorf("%s: got %+v, want Blocked false, no Findings", code, r)
		}
	}
}

func TestAcceptance86Aliases(t *testing.T) {
	c := compiled(t, security.Policy{Threshold: security.Low, Names: []security.RestrictedName{{Name: "os.path.*", Severity: security.High}, {Name: "os.system", Severity: security.High}}})
	for code, blocked := range map[string]bool{
		"import os as x\nx.system('a')": true, "from os import path\npath.join('a')": true, "from os import system as s\ns('a')": true,
		"import os\nf = os.system\nf('a')": true, "import os\nos.getcwd()": false, "import osx as os\nos.system('a')": false,
	} {
		if r := check(t, c, "python", []byte(code)); r.Blocked != blocked {
			t.Errorf("%s: got %+v, want Blocked = %v", code, r, blocked)
		}
	}
	c = restrictive(t, "python")
	for _, code := range []string{"import os as x", "from os import path", "import os.path"} {
		if r := check(t, c, "python", []byte(code)); !r.Blocked {
			t.Errorf("%s: got %+v, want Blocked true", code, r)
		}
	}
}

// With the threshold SAFE everything is reported and nothing is refused.
func TestAcceptance88SafeTells(t *testing.T) {
	c := compiled(t, security.Policy{
		Modules: []security.RestrictedModule{{Name: "urllib", Severity: security.High}, {Name: "socket", Severity: security.High}},
		Names:   []security.RestrictedName{{Name: "eval", Severity: security.Medium}},
	})
	r := check(t, c, "python", []byte("import urllib.request\nimport socket\neval('1')\n"))
	want := []string{"1:8 HIGH module:urllib", "2:8 HIGH module:socket", "3:1 MEDIUM name:eval"}
	if r.Blocked || !reflect.DeepEqual(found(r), want) || len(r.Violations()) != 3 {
		t.Errorf("got %v, %+v, want Blocked false, %v, len(r.Violations()) = 3", found(r), r, want)
	}
}

// A policy is not changed by its use, also by many at once.
func TestAcceptance90UnchangedByUse(t *testing.T) {
	c := preset(t, "production")
	before := c.Policy()
	code := []byte("import os as o\nfrom subprocess import run\no.system('rm -rf /')\nopen('a', 'w')\n")
	want := check(t, c, "python", code)
	if len(want.Findings) < 4 {
		t.Fatalf("got %+v, want len(want.Findings) >= 4", want)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if r := check(t, c, "py", code); !reflect.DeepEqual(r, want) {
					t.Errorf("got %+v, want %+v", r, want)
				}
			}
		})
	}
	wg.Wait()
	if !reflect.DeepEqual(c.Policy(), before) {
		t.Error("the policy was changed: reflect.DeepEqual(c.Policy(), before) = false, want true")
	}
}

// What cannot be looked at does not pass where anything is refused.
func TestWhatCannotBeReadIsAFinding(t *testing.T) {
	large := bytes.Repeat([]byte("#\n"), security.MaxCode/2+1)
	for threshold, blocked := range map[security.Severity]bool{security.Safe: false, security.Low: true, security.High: true} {
		r := check(t, compiled(t, security.Policy{Threshold: threshold}), "python", large)
		if r.Blocked != blocked || len(r.Findings) != 1 || r.Findings[0].Rule != "unreadable" {
			t.Errorf("%v: got %+v, want Blocked = %v, len(r.Findings) = 1, Rule = \"unreadable\"", threshold, r, blocked)
		}
		r = check(t, compiled(t, security.Policy{Threshold: threshold, Computed: security.High}), "python", []byte("x = '''"))
		if r.Blocked != blocked || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Reason, "could not be read to its end") {
			t.Errorf("%v: got %+v, want Blocked = %v, len(r.Findings) = 1, Reason containing \"could not be read to its end\"", threshold, r, blocked)
		}
	}
	if r := check(t, compiled(t, security.Policy{Threshold: security.High}), "python", []byte("__import__(input())")); r.Blocked || len(r.Findings) != 1 || r.Findings[0].Rule != "computed:import" {
		t.Errorf("got %+v, want Blocked false, len(r.Findings) = 1, Rule = \"computed:import\"", r)
	}
	if _, err := preset(t, "strict").Check(t.Context(), "cobol", nil); !errors.Is(err, language.ErrUnknown) {
		t.Errorf("got %v, want language.ErrUnknown", err)
	}
}

func TestLanguagesOfRules(t *testing.T) {
	c := compiled(t, security.Policy{Threshold: security.Low, Modules: []security.RestrictedModule{{Name: "os", Severity: security.High, Languages: []string{"js"}}}})
	if r := check(t, c, "python", []byte("import os")); r.Blocked {
		t.Errorf("got %+v, want Blocked false", r)
	}
	if r := check(t, c, "javascript", []byte("require('os')")); !r.Blocked {
		t.Errorf("got %+v, want Blocked true", r)
	}
}

func TestLibrariesCountAsTheirModules(t *testing.T) {
	for _, c := range []struct{ lang, module, library, rule string }{
		{"python", "requests", "requests", "library:requests"}, {"python", "requests", "Requests[socks]==2.31", "library:requests"},
		{"python", "Flask_Login", "flask.login~=1.0", "library:Flask_Login"}, {"python", "requests", "requests-oauthlib", ""},
		{"python", "yaml", "PyYAML", "library:yaml"}, {"python", "cv2", "opencv-python-headless", "library:cv2"}, {"python", "requests", "-r requirements.txt", ""},
		{"javascript", "axios", "axios@^1.0.0", "library:axios"}, {"javascript", "@aws-sdk", "@aws-sdk/client-s3@3", "library:@aws-sdk"}, {"javascript", "axios", "axios-retry", ""},
		{"go", "github.com/gorilla/websocket", "github.com/gorilla/websocket@v1.5.0", "library:github.com/gorilla/websocket"},
		{"go", "golang.org/x/net", "golang.org/x/net/html@latest", "library:golang.org/x/net"}, {"go", "golang.org/x/net", "golang.org/x/network", ""},
		{"ruby", "httparty", "httparty:0.21", "library:httparty"}, {"r", "httr", "httr", "library:httr"}, {"r", "httr", "httr2", ""},
		{"java", "org.apache.httpcomponents", "org.apache.httpcomponents:httpclient:4.5", "library:org.apache.httpcomponents"}, {"java", "org.apache.http", "org.apache.httpcomponents:httpclient:4.5", ""},
	} {
		r, err := compiled(t, security.Policy{Threshold: security.Low, Modules: []security.RestrictedModule{{Name: c.module, Severity: security.High}}}).CheckLibraries(c.lang, []string{c.library})
		got := ""
		if len(r.Findings) > 0 {
			got = r.Findings[0].Rule
		}
		if err != nil || got != c.rule || r.Blocked != (c.rule != "") {
			t.Errorf("%+v: got %+v, %v, want no error, got = %v, Blocked = %v", c, r, err, c.rule, c.rule != "")
		}
	}
}

func TestProgramsAreLookedAtAsAWhole(t *testing.T) {
	r, err := preset(t, "production").CheckProgram(t.Context(), security.Program{
		Language: "python", Name: "main.py", Code: []byte("import helper\n"), Libraries: []string{"requests==2"},
		Files: map[string][]byte{"helper.py": []byte("import subprocess"), "data.csv": []byte("import os"), "run": []byte("#!/bin/sh\nrm x\n")},
	})
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.File+" "+f.Rule)
	}
	want := []string{" library:requests", "helper.py module:subprocess", "run name:rm"}
	if err != nil || !r.Blocked || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want no error, Blocked true, got %q", got, err, want)
	}
}
