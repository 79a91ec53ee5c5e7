package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// encode turns what is known of a sandbox into annotations of its pod. What is secret is
// not in them.
func encode(info backend.Info, guest backend.Guest) (map[string]string, error) {
	about, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("describe the sandbox: %w", err)
	}
	inside, err := json.Marshal(guest)
	if err != nil {
		return nil, fmt.Errorf("describe the inside: %w", err)
	}
	return map[string]string{podspec.AnnotationInfo: string(about), podspec.AnnotationGuest: string(inside)}, nil
}

// decodeInfo is the reverse of one half. Annotations of other programs may be
// anything; the API server bounds them.
func decodeInfo(pod *corev1.Pod) (backend.Info, error) {
	var info backend.Info
	if err := json.Unmarshal([]byte(pod.Annotations[podspec.AnnotationInfo]), &info); err != nil {
		return info, fmt.Errorf("annotation %s: %w", podspec.AnnotationInfo, err)
	}
	if info.ID == "" || info.ID != pod.Labels[podspec.LabelSandbox] {
		return info, fmt.Errorf("annotation %s: it is of sandbox %.50q, and the label says %.50q", podspec.AnnotationInfo, info.ID, pod.Labels[podspec.LabelSandbox])
	}
	info.Backend = Name
	return info, nil
}

// decodeGuest is that of the other half.
func decodeGuest(pod *corev1.Pod) (backend.Guest, error) {
	var guest backend.Guest
	err := json.Unmarshal([]byte(pod.Annotations[podspec.AnnotationGuest]), &guest)
	if err == nil && guest.Workdir == "" {
		err = errors.New("it has no working directory")
	}
	if err != nil {
		return guest, fmt.Errorf("annotation %s: %w", podspec.AnnotationGuest, err)
	}
	return guest, nil
}

// agentOf reads how to connect to an agent from the container that it is the main process of.
func agentOf(pod *corev1.Pod) (agenthost.Agent, error) {
	a := agenthost.Agent{File: agentFile}
	for _, c := range pod.Spec.Containers {
		if c.Name != podspec.Container {
			continue
		}
		for _, e := range c.Env {
			if e.Name == podspec.EnvToken {
				a.Token = e.Value
			}
		}
		line := append(c.Command[:len(c.Command):len(c.Command)], c.Args...)
		for i, arg := range line {
			if arg == "--listen" && i+1 < len(line) {
				a.Socket = line[i+1]
			}
		}
	}
	if a.Token == "" || !strings.HasPrefix(a.Socket, "@") {
		return a, fmt.Errorf("pod %s has no container %q with an agent", pod.Name, podspec.Container)
	}
	return a, nil
}

// ownerText describes a sandbox's owner, for people.
func ownerText() string {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}

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
	g := backend.Guest{Env: spec.Env, Workdir: podspec.WorkdirOf(spec), TempDir: tempDir, Image: image, StartDir: spec.Workdir}
	if agenthost.AsRoot(spec) {
		g.Env = environ.Override([]string{"USER=root", "LOGNAME=root"}, spec.Env)
	}
	return g
}

// complete adds what a container has of itself: the image's variables and those of the
// caller's template, and the image's directory, unless the caller has one.
func complete(g backend.Guest, h header) backend.Guest {
	// Where the user is a number that the image has no name for.
	base := environ.Override([]string{environ.DefaultPath, "USER=sandbox", "LOGNAME=sandbox"}, ofImage(h.env))
	if environ.Value(g.Env, "USER") == "root" { // as asked says
		base = environ.WithSystemPath(base)
	}
	base = environ.Override(base, []string{"HOME=" + g.Workdir, "TMPDIR=" + g.TempDir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"})
	g.Env, g.Arch = environ.Override(base, environ.OfPrograms(g.Env)), h.arch
	if g.StartDir == "" && h.dir != "/" && h.dir != g.Workdir {
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
