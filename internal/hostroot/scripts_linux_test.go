package hostroot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRetarget(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"pyenv":                {"#!/home/a/.pyenv/versions/3.11.7/bin/python3.11\nx", "#!/in/python3\nx"},
		"a venv":               {"#!/home/a/p/.venv/bin/python\nx", "#!/in/python3\nx"},
		"conda, with options":  {"#!/opt/conda/bin/python -sE\nx", "#!/in/python3 -sE\nx"},
		"pypy":                 {"#! /opt/pypy/bin/pypy3\nx", "#! /in/python3\nx"},
		"a long path":          {"#!/bin/sh\n'''exec' /home/a/long/bin/python3 \"$0\" \"$@\"\n' '''\nx", "#!/bin/sh\n'''exec' /in/python3 \"$0\" \"$@\"\n' '''\nx"},
		"a path with a space":  {"#!/bin/sh\n'''exec' \"/home/a b/bin/python3\" \"$0\" \"$@\"\n' '''\nx", "#!/bin/sh\n'''exec' \"/in/python3\" \"$0\" \"$@\"\n' '''\nx"},
		"a space, of uv":       {"#!/bin/sh\n'''exec' '/home/a b/bin/python' \"$0\" \"$@\"\n' '''\nx", "#!/bin/sh\n'''exec' '/in/python3' \"$0\" \"$@\"\n' '''\nx"},
		"the system's":         {"#!/usr/bin/python3\nx", ""},
		"the system's, hidden": {"#!/home/../usr/bin/python3\nx", ""},
		"found by env":         {"#!/usr/bin/env python3\nx", ""},
		"one that moves":       {"#!/bin/sh\n'''exec' \"$(dirname -- \"$0\")/python3\" \"$0\" \"$@\"\n' '''\nx", ""},
		"a shell script":       {"#!/bin/sh\nexec /home/a/bin/python3 x\n", ""},
		"another program":      {"#!/home/a/bin/pythonesque\nx", ""},
		"no script":            {"", ""},
	} {
		got, ok := retarget([]byte(c.script), "/in/python3")
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, c.want)
		}
	}
}

// TestConsoleScripts: scripts of a toolchain and of a virtual environment are there, what is
// not theirs is not, and a new one changes the skeleton.
func TestConsoleScripts(t *testing.T) {
	home := t.TempDir()
	prefix, env := filepath.Join(home, "py"), filepath.Join(home, "my env")
	touch(t, home, "py/lib/python3.11/os.py", "py/bin/python3", "my env/pyvenv.cfg", "my env/lib/python3.11/site-packages/x.py", "secret")
	put := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, path string) {
		t.Helper()
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!" + prefix + "/bin/python3\n"
	put(prefix+"/bin/pip", script+"base", 0o755)
	put(prefix+"/bin/both", script+"base", 0o755)
	put(prefix+"/bin/closed", script, 0o700)
	put(prefix+"/bin/large", script+strings.Repeat("#", maxScript), 0o755)
	put(prefix+"/bin/native", "\x7fELF", 0o755)
	put(home+"/outside", script, 0o755)
	link("pip", prefix+"/bin/pip3")
	link("../../outside", prefix+"/bin/outside")
	put(env+"/bin/both", "#!/bin/sh\n'''exec' \""+env+"/bin/python\" \"$0\" \"$@\"\n' '''\nenv", 0o755)
	if err := os.MkdirAll(env+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	link(prefix+"/bin/python3", env+"/bin/python3")

	cache := t.TempDir()
	again := func() *Root {
		t.Helper()
		root, err := Prepare(cache, Options{Getenv: func(name string) string {
			return map[string]string{"HOME": "/nonexistent", "VIRTUAL_ENV": env, "PATH": "/usr/bin"}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	root := again()
	const python = "/opt/toolchains/python/bin/python3"
	for name, want := range map[string]string{
		"pip": "#!" + python + "\nbase", "pip3": "#!" + python + "\nbase",
		"both":   "#!/bin/sh\n'''exec' \"" + python + "\" \"$0\" \"$@\"\n' '''\nenv",
		"closed": "", "large": "", "native": "", "outside": "",
	} {
		got, _ := os.ReadFile(filepath.Join(root.Skeleton, scriptDir, name))
		if string(got) != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if target, err := os.Readlink(filepath.Join(root.Skeleton, scriptDir, "python")); target != python {
		t.Errorf("python leads to %q, %v, want %q", target, err, python)
	}
	if want := "PATH=" + scriptDir + ":/opt/toolchains/python/bin:"; !strings.HasPrefix(root.Env[0], want) {
		t.Errorf("%s, want %s first", root.Env[0], want)
	}
	put(env+"/bin/new", script, 0o755)
	if changed := again(); changed.Skeleton == root.Skeleton {
		t.Error("a new script changed nothing, want another skeleton")
	} else if _, err := os.Stat(filepath.Join(changed.Skeleton, scriptDir, "new")); err != nil {
		t.Error(err)
	}
}

// TestConsoleScriptsWorkInside starts pip of this machine's Python and of an environment of it.
func TestConsoleScriptsWorkInside(t *testing.T) {
	if err := exec.Command("pip3", "--version").Run(); err != nil {
		t.Skipf("no pip here: %v", err)
	}
	env := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command("python3", "-m", "venv", env).CombinedOutput(); err != nil {
		t.Skipf("no virtual environments here: %v: %s", err, out)
	}
	for name, vars := range map[string]map[string]string{
		"python":      {"HOME": os.Getenv("HOME"), "PATH": os.Getenv("PATH")},
		"environment": {"HOME": os.Getenv("HOME"), "PATH": os.Getenv("PATH"), "VIRTUAL_ENV": env},
	} {
		t.Run(name, func(t *testing.T) {
			root := prepare(t, vars)
			for _, command := range []string{"pip --version", "pip3 --version", "python --version", "python3 -m pip --version"} {
				if out, err := inside(t, root, "/bin/sh", "-c", command); err != nil {
					t.Errorf("%s: %v: %s", command, err, out)
				}
			}
			if out, err := inside(t, root, "/bin/sh", "-c", "cat /opt/toolchains/bin/*"); strings.Contains(out, env) {
				t.Errorf("%s is named inside, want no path of the host: %v", env, err)
			}
		})
	}
}
