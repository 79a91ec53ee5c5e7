package testimage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// unwanted is left out of a Debian, for its size.
var unwanted = []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"}

// Debian writes the tar of a root file system: the host's own release with the packages,
// from the host's own package sources, made with mmdebstrap. The hooks are shell
// commands that end the making; in them $1 is the root.
func Debian(ctx context.Context, w io.Writer, packages []string, hooks ...string) error {
	release, err := Release()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return Lack("the image of this test needs mmdebstrap (apt-get install mmdebstrap)")
	}
	args := []string{"--quiet", "--format=tar", "--variant=minbase", "--include=" + strings.Join(packages, ","),
		// Java's packages want the directory of the manual, empty as it is.
		`--essential-hook=mkdir -p "$1/usr/share/man/man1"`}
	for _, p := range unwanted {
		args = append(args, "--dpkgopt=path-exclude="+p)
	}
	for _, h := range hooks {
		args = append(args, "--customize-hook="+h)
	}
	args = append(args, release, "-")
	var messages bytes.Buffer
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, sources()...)...)
	cmd.Stdout, cmd.Stderr = w, &messages
	if err := cmd.Run(); err != nil {
		out := messages.Bytes()
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out[max(0, len(out)-2000):])
	}
	return nil
}

// sources are the host's own package sources: it knows which mirror to use.
func sources() []string {
	var list []string
	for _, path := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"} {
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}

// Release is the Debian release of the host, such as "bookworm".
func Release() (string, error) {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", Lack(fmt.Sprintf("the image of this test is made on Debian only: %v", err))
	}
	vars := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		k, v, _ := strings.Cut(line, "=")
		vars[k] = strings.Trim(v, `"`)
	}
	if vars["ID"] != "debian" || vars["VERSION_CODENAME"] == "" {
		return "", Lack("the image of this test is made on Debian only")
	}
	return vars["VERSION_CODENAME"], nil
}
