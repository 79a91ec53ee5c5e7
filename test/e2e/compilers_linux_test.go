package e2e

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestPreparedCompilers: g++ and javac take what was prepared for them, within the default limits.
func TestPreparedCompilers(t *testing.T) {
	for _, c := range []struct{ language, used, want, code string }{
		{"cpp", "g++ -std=c++17 -O1 -pthread -H -fsyntax-only -include /tmp/.cache/cpp-headers/0.h -x c++ /dev/null 2>&1 | head -n 1", "! /tmp/.cache/cpp-headers/0.h.gch",
			"#include <bits/stdc++.h>\nint main() { std::map<int, std::string> m{{1, \"one\"}}; std::cout << m[1] << std::endl; }"},
		{"java", "javac -J-Xlog:class+load -J-XX:SharedArchiveFile=/tmp/.cache/javac/javac.jsa -version | grep javac.main.Main", "shared objects file",
			"class Main { public static void main(String[] a) { System.out.println(\"one\"); } }"},
	} {
		t.Run(c.language, func(t *testing.T) {
			sb := open(t, llmsandbox.Options{Language: c.language})
			res, err := sb.Shell(testContext(t), c.used, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(res.Stdout, c.want) {
				t.Errorf("%q, want it to contain %q: what was prepared is not used", res.Stdout, c.want)
			}
			res = run(t, sb, c.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, "one\n")
		})
	}
}
