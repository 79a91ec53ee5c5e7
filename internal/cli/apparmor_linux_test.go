package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// What AppArmor's own parser makes of a profile: for the program's path, that path and no pattern.
func TestAppArmorProfile(t *testing.T) {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		parser = "/usr/sbin/apparmor_parser"
	}
	if _, err := os.Stat(parser); err != nil {
		testimage.Unavailable(t, "this test needs apparmor_parser (apt-get install apparmor)")
	}
	for path, want := range map[string]string{
		"/usr/local/bin/llmsandbox":          `/usr/local/bin/llmsandbox`,
		"/home/ann b/go@1.26/l+~s,=:%-_/llm": `/home/ann\ b/go@1\.26/l\+~s,=:%-_/llm`,
		"/home/zoë/llmsandbox":               `/home/zo\xc3\xab/llmsandbox`,
		"/opt/a*/llmsandbox":                 "",
		"/opt/@{HOME}/llmsandbox":            "",
		"/opt/a\"b/llmsandbox":               "",
		`/opt/a\b/llmsandbox`:                "",
		"/opt/a\nb/llmsandbox":               "",
		"/opt/a#b":                           "",
		"/opt/llmsandbox (deleted)":          "",
	} {
		text, err := appArmorProfile(path)
		if (err == nil) != (want != "") {
			t.Errorf("%s: error %v, want one: %v", path, err, want == "")
		}
		if err != nil || want == "" {
			continue
		}
		if _, err := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil { // AppArmor before 4.0 knows neither
			text = strings.NewReplacer("abi/4.0", "abi/3.0", "  userns,\n", "").Replace(text)
		}
		// No kernel with AppArmor is needed: nothing is loaded, and no cache is used.
		cmd := exec.Command(parser, "-Q", "-K", "--dump=expr-tree")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\n"+want+"<") {
			t.Errorf("%s: %v\n%s\nwant no error, and that the profile is for %s", text, err, out, want)
		}
	}
}

func TestAppArmorLoads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root loads profiles")
	}
	text, err := appArmorProfile("/usr/local/bin/llmsandbox")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		parser string // a script; empty: there is none
		there  string // what is at the profile's place
		kernel bool
		want   string // in the error; empty: none
	}{
		{name: "no AppArmor", parser: `exit 0`, want: "so none needs a profile"},
		{name: "no parser", kernel: true, want: "apt-get install apparmor"},
		{name: "refused", parser: `echo "line 3: syntax error" >&2; exit 1`, kernel: true, want: "line 3: syntax error"},
		{name: "another's profile", parser: `exit 0`, there: "profile llmsandbox {}\n", kernel: true, want: "was not written by this command"},
		{name: "loaded", parser: `[ "$*" = --replace ] && cat >"$0.got"`, kernel: true},
		{name: "loaded again", parser: `[ "$*" = --replace ] && cat >"$0.got"`, there: appArmorMark, kernel: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			parser, a := filepath.Join(dir, "apparmor_parser"), appArmor{filepath.Join(dir, "setting"), filepath.Join(dir, "profile")}
			t.Setenv("PATH", dir+":/bin:/usr/bin") // the true parser is in /usr/sbin
			write := func(path, content string) {
				if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.parser != "" {
				write(parser, "#!/bin/sh\n"+c.parser+"\n")
			}
			if c.there != "" {
				write(a.profile, c.there)
			}
			if c.kernel {
				write(a.setting, "1\n")
			}
			err := a.load(t.Context(), text)
			written, _ := os.ReadFile(a.profile)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || string(written) != c.there {
					t.Errorf("%v, the profile is %q, want an error with %q and %q", err, written, c.want, c.there)
				}
				return
			}
			loaded, _ := os.ReadFile(parser + ".got")
			if err != nil || string(written) != text || string(loaded) != text {
				t.Errorf("%v, wrote %q, loaded %q, want no error and %q", err, written, loaded, text)
			}
		})
	}
}

func TestReplaceable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	program := filepath.Join(dir, "llmsandbox")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if uid := os.Geteuid(); uid != 0 {
		if path, who := replaceable(program); path != program || who != fmt.Sprint("user ", uid) {
			t.Errorf("%s, %s, want %s, user %d", path, who, program, uid)
		}
		return
	}
	for _, c := range []struct {
		of       string
		mode     os.FileMode
		uid, gid int
		who      string
	}{
		{program, 0o755, 0, 0, ""},
		{program, 0o775, 0, 0, ""},
		{program, 0o775, 0, 1000, "group 1000"},
		{program, 0o755, 1000, 0, "user 1000"},
		{dir, 0o757, 0, 0, "everybody"},
		{dir, 0o757 | os.ModeSticky, 0, 0, ""},
		{dir, 0o755, 1000, 0, "user 1000"},
		{dir, 0o775 | os.ModeSticky, 1000, 0, "user 1000"},
	} {
		if err := os.Chown(c.of, c.uid, c.gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.of, c.mode); err != nil {
			t.Fatal(err)
		}
		want := c.of
		if c.who == "" {
			want = ""
		}
		if path, who := replaceable(program); path != want || who != c.who {
			t.Errorf("%s of %d:%d, mode %v: %q, %q, want %q, %q", c.of, c.uid, c.gid, c.mode, path, who, want, c.who)
		}
		if err := os.Chown(c.of, 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.of, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
