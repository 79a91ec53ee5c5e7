//go:build linux

package kubernetes

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// Sandboxes work in a directory of a pod, whose files and libraries stay there.
func TestKeepFilesOfPod(t *testing.T) {
	beside(t)
	p := newPlace(t)
	wheels := t.TempDir()
	testpackage.Wheel(t, wheels, "tiny", "1.0", map[string]string{"tiny.py": "answer = 42\n"})
	pod := p.foreignPod(t, "theirs", corev1.Container{Name: "main", Image: p.node.Images(t)("python"), Command: own})
	b := p.newBackend(t, func(o *kubernetes.Options) { o.Pod = pod.Name })
	for i := range 2 {
		installs := make(chan string, 1000)
		o := llmsandbox.Options{
			Backend: b, Workdir: "/sandbox/project/deep", KeepFiles: true, Libraries: []string{"tiny"}, Install: llmsandbox.InstallOptions{Local: wheels},
			Progress: func(p backend.Progress) { installs <- p.Stage },
		}
		sb, err := llmsandbox.Open(testfaults.Context(t), &o)
		if err != nil {
			t.Fatal(err)
		}
		if installed := len(installs) > 0; installed != (i == 0) {
			t.Errorf("sandbox %d: installed %t, want %t", i, installed, i == 0)
		}
		res, err := sb.Run(testfaults.Context(t), `
import os, tiny
print(os.getcwd(), os.path.expanduser("~").startswith(os.getcwd()), tiny.answer)
open("runs", "a").write("x")
`, nil)
		if err != nil || res.Stdout != "/sandbox/project/deep False 42\n" {
			t.Errorf("sandbox %d: %v, %+v, want Stdout = \"/sandbox/project/deep False 42\\n\"", i, err, res)
		}
		testfaults.Close(t, sb)
		testfaults.AwaitDone(t, sb)
	}
	sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Language: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	defer testfaults.Close(t, sb)
	res, err := sb.Shell(testfaults.Context(t), "cat /sandbox/project/deep/runs; ls -A /sandbox/project/deep; ls -d $(dirname $HOME)/sandbox-* | wc -l", nil)
	if want := "xx.llmsandbox\nruns\n1\n"; err != nil || res.Stdout != want {
		t.Errorf("afterwards: %v, %+v, want Stdout = %q", err, res, want)
	}
	o := llmsandbox.Options{Backend: b, Workdir: "/usr/nope", KeepFiles: true}
	if sb, err := llmsandbox.Open(testfaults.Context(t), &o); err == nil || !strings.Contains(err.Error(), "/usr/nope") {
		t.Errorf("a directory that cannot be made: %v, want an error with its name", err)
		if err == nil {
			testfaults.Close(t, sb)
		}
	}
	o = llmsandbox.Options{Backend: p.newBackend(t, func(*kubernetes.Options) {}), Workdir: "/srv/project", KeepFiles: true}
	if _, err := llmsandbox.Open(testfaults.Context(t), &o); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("a pod of its own: %v, want %v", err, llmsandbox.ErrUnsupported)
	}
}
