//go:build linux

package kubernetes

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// server listens on every address and answers each who connects.
const server = `
import socket
s = socket.create_server(("0.0.0.0", 28923))
print("listens", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"REACHED")
    c.close()
`

// reach tries to connect to an address, and returns the answer.
func reach(address string) string {
	return fmt.Sprintf(`import socket
try:
    with socket.create_connection((%q, 28923), 3) as c:
        print(c.recv(100))
except OSError as e:
    print("no", e)
`, address)
}

// The cluster cuts sandboxes off from its pods, and its pods and other sandboxes off from
// them; pods that are not ours reach each other.
func TestNetworkIsCutOff(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	image := p.node.Images(t)("python")
	theirs := []*corev1.Pod{
		p.foreignPod(t, "server", corev1.Container{Name: "sandbox", Image: image, Command: []string{"python3", "-c", server}}),
		p.foreignPod(t, "client", corev1.Container{Name: "sandbox", Image: image, Command: own}),
	}
	from := func(pod *corev1.Pod, address string) string {
		t.Helper()
		said, err := p.exec(testfaults.Context(t), pod.Name, "python3", "-c", reach(address))
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := from(theirs[1], theirs[0].Status.PodIP); !strings.Contains(said, "REACHED") {
		t.Fatalf("pods do not reach each other (%q), so this test shows nothing, want it to contain \"REACHED\"", said)
	}
	o := llmsandbox.Options{Backend: b, Image: image, BestEffort: true}
	var ours []*llmsandbox.Sandbox
	for range 2 {
		sb, err := llmsandbox.Open(testfaults.Context(t), &o)
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		ours = append(ours, sb)
	}
	ended := testfaults.Start(t, func(stdout io.Writer) (*llmsandbox.Result, error) { // it ends with the sandbox
		return ours[0].Run(testfaults.Context(t), server, &llmsandbox.RunOptions{Stdout: stdout, Timeout: 2 * time.Minute})
	})
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), podName(ours[0].ID()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inside := func(sb *llmsandbox.Sandbox, address string) string {
		t.Helper()
		res, err := sb.Run(testfaults.Context(t), reach(address), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Stdout
	}
	if said := inside(ours[0], "127.0.0.1"); !strings.Contains(said, "REACHED") {
		t.Fatalf("the sandbox's server does not answer (%q), so this test shows nothing, want it to contain \"REACHED\"", said)
	}
	for what, said := range map[string]string{
		"another pod reaches the sandbox":     from(theirs[1], pod.Status.PodIP),
		"another sandbox reaches the sandbox": inside(ours[1], pod.Status.PodIP),
		"the sandbox reaches another pod":     inside(ours[0], theirs[0].Status.PodIP),
	} {
		if !strings.HasPrefix(said, "no ") {
			t.Errorf("%s: %q, want it to begin with \"no \"", what, said)
		}
	}
	testfaults.Close(t, ours...)
	<-ended
}
