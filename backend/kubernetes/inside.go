package kubernetes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// maxHeader bounds what an agent's bridge reports about its container, in bytes.
const maxHeader = 1 << 20

// A header is what an agent's bridge reports about its container, before the stream.
type header struct {
	arch string
	dir  string // where the container starts its programs; empty: not known
	env  []string
}

var errHeader = errors.New("the agent's description of its container is not understood")

// readHeader reads strings that each end in a zero byte: the architecture, the directory, the
// variables, and an empty one.
func readHeader(r *bufio.Reader) (header, error) {
	var h header
	left := maxHeader
	next := func() (string, error) {
		var s []byte
		for {
			c, err := r.ReadByte()
			if err != nil {
				return "", err
			}
			if c == 0 {
				return string(s), nil
			}
			if left--; left < 0 {
				return "", fmt.Errorf("%w: they are longer than %d bytes", errHeader, maxHeader)
			}
			s = append(s, c)
		}
	}
	var err error
	if h.arch, err = next(); err != nil {
		return h, err
	}
	if h.arch == "" {
		return h, errHeader
	}
	if h.dir, err = next(); err != nil {
		return h, unexpected(err)
	}
	for {
		line, err := next()
		if err != nil {
			return h, unexpected(err)
		}
		if line == "" {
			return h, nil
		}
		if len(h.env) == maxVariables {
			return h, fmt.Errorf("%w: there are more than %d variables", errHeader, maxVariables)
		}
		h.env = append(h.env, line)
	}
}

// maxVariables bounds their number.
const maxVariables = 10_000

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// asked is what a sandbox's owner wants of its inside, as far as that follows from spec.
// What the container has of itself comes with complete.
func asked(spec backend.Spec, image string) backend.Guest {
	return backend.Guest{Env: spec.Env, Workdir: workdir, TempDir: tempDir, Image: image}
}

// complete adds what a container has of itself: the image's variables and those of the
// caller's template, and the image's directory.
func complete(g backend.Guest, h header) backend.Guest {
	// Where the user is a number that the image has no name for.
	base := environ.Override([]string{environ.DefaultPath, "USER=sandbox", "LOGNAME=sandbox"}, ofImage(h.env))
	base = environ.Override(base, []string{"HOME=" + g.Workdir, "TMPDIR=" + g.TempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"})
	g.Env, g.Arch = environ.Override(base, environ.OfPrograms(g.Env)), h.arch
	if h.dir != "/" && h.dir != g.Workdir {
		g.StartDir = h.dir
	}
	return g
}

// ofContainer are variables that a kubelet or a container runtime gives every container.
var ofContainer = []string{"HOSTNAME", "HOME", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}

// ofImage drops as well what is the container's own, and the address of the cluster's API,
// which no program needs to know.
func ofImage(env []string) []string {
	return slices.DeleteFunc(environ.OfPrograms(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "KUBERNETES_") || slices.Contains(ofContainer, name)
	})
}
