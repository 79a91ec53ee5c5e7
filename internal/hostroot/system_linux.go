package hostroot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// packageDirs are those of Debian's package manager that it does not make itself, and root's home.
var packageDirs = []string{"root", "srv", "mnt", "var/cache/apt/archives/partial", "var/cache/debconf", "var/log/apt"}

// packageSettings are files of /etc that packages use to install themselves.
var packageSettings = []string{"adduser.conf", "ca-certificates.conf", "debconf.conf", "deluser.conf", "dpkg/dpkg.cfg", "login.defs", "shells", "skel"}

// rootOnly is a PAM configuration: root can become any user with su, and other users cannot.
const rootOnly = "auth sufficient pam_rootok.so\nauth required pam_deny.so\naccount required pam_permit.so\npassword required pam_deny.so\nsession required pam_permit.so\n"

// System is what a root that code is root of has more than a skeleton, so that the host's package manager works in it: a
// layer above the skeleton, and directories to be mounted as binds are. There are none of another distribution than Debian.
func System(cacheDir string) (layer string, binds []Bind, err error) {
	var dirs, sources, names []string
	if _, err := os.Lstat("/var/lib/dpkg/status"); err == nil {
		binds = []Bind{{"/etc/apt", "/etc/apt"}, {"/var/lib/apt", "/var/lib/apt"}, {"/var/lib/dpkg", "/var/lib/dpkg"}}
		dirs = packageDirs
		for _, name := range packageSettings {
			path := filepath.Join("/etc", name)
			if info, err := os.Lstat(path); err == nil {
				sources = append(sources, path)
				names = append(names, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	settings := map[string]string{"pam.d/other": rootOnly}
	for _, name := range []string{"passwd", "group"} {
		if settings[name], err = systemAccounts(name); err != nil {
			return "", nil, err
		}
	}
	layer = filepath.Join(cacheDir, "hostroot-system-"+hash(fmt.Sprint(layoutVersion, dirs, names, settings)))
	if isLayer(layer) {
		return layer, binds, nil
	}
	err = build(cacheDir, layer, func(b *builder) {
		for _, dir := range dirs {
			b.mkdir(dir)
		}
		left := maxEtcFiles
		for _, path := range sources {
			b.copy(path, maxEtcDepth, &left)
		}
		for name, text := range settings {
			b.write("etc/"+name, []byte(text))
		}
	})
	return layer, binds, err
}

// systemAccounts are the users or groups of a sandbox, and those of the host that belong to packages, which have ids below 1000. They
// have no passwords there, and no names of people.
func systemAccounts(name string) (string, error) {
	host, err := os.ReadFile("/etc/" + name)
	if err != nil {
		return "", err
	}
	text := strings.Replace(synthetic[name], "root:x:0:0:root:/:/usr/sbin/nologin", "root:x:0:0:root:/root:/bin/bash", 1)
	for line := range strings.Lines(string(host)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || strings.Contains("\n"+text, "\n"+f[0]+":") {
			continue
		}
		if id, err := strconv.ParseUint(f[2], 10, 32); err != nil || id == 0 || id >= 1000 {
			continue
		}
		f[1] = "x"
		if len(f) > 4 { // a comment
			f[4] = ""
		} else { // members
			f[3] = ""
		}
		text += strings.Join(f, ":") + "\n"
	}
	return text, nil
}
