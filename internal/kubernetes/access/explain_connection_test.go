package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestExplainConnection asks servers that are not what a kubeconfig says, over a real client.
func TestExplainConnection(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	hangsUp := listen(t, func(c net.Conn) { _ = c.Close() })
	for name, c := range map[string]struct {
		config rest.Config
		words  []string
	}{
		"refused":   {rest.Config{Host: closed.URL}, []string{closed.URL + " cannot be reached", "connection refused"}},
		"authority": {rest.Config{Host: secure.URL}, []string{"does not trust", "certificate-authority-data"}},
		"hostname": {rest.Config{Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{ServerName: "other.invalid", CAData: authority(secure)}},
			[]string{"for other names", "tls-server-name"}},
		"no TLS":   {rest.Config{Host: strings.Replace(plain.URL, "http:", "https:", 1)}, []string{"does not speak TLS"}},
		"name":     {rest.Config{Host: "https://nowhere.invalid", Dial: unresolvable}, []string{"cannot be resolved", "VPN"}},
		"hangs up": {rest.Config{Host: "http://" + hangsUp}, []string{"ended the connection"}},
		"silent":   {rest.Config{Host: "https://10.0.0.1", Dial: unanswered}, []string{"does not answer", "firewall"}},
		"proxy":    {rest.Config{Host: "https://10.0.0.1", Proxy: http.ProxyURL(mustURL(t, closed.URL))}, []string{"through the proxy", "NO_PROXY"}},
		"plugin that fails": {rest.Config{Host: secure.URL, ExecProvider: failingPlugin(t), TLSClientConfig: rest.TLSClientConfig{CAData: authority(secure)}},
			[]string{"gives the credentials failed", "run it by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(&c.config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.CoreV1().Pods("a").Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{})
			explained := Explain("create the pod", err)
			var e *Error
			if !errors.As(explained, &e) || !errors.Is(explained, backend.ErrUnsupported) || e.Fix == "" || !errors.Is(explained, err) {
				t.Fatalf("%v (of %#v), want an error of type %T, backend.ErrUnsupported, Fix not empty, %v", explained, err, e, err)
			}
			for _, w := range c.words {
				if !strings.Contains(explained.Error(), w) {
					t.Errorf("%q does not say %q", explained, w)
				}
			}
		})
	}
}

func TestExplainUnknown(t *testing.T) {
	below := errors.New("something else")
	err := Explain("look", below)
	if err.Error() != "look: something else" || !errors.Is(err, below) || errors.Is(err, backend.ErrUnsupported) {
		t.Error(err)
	}
}

func unresolvable(_ context.Context, _, address string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
}

func unanswered(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// failingPlugin is a program that gives no credentials.
func failingPlugin(t *testing.T) *clientcmdExec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &clientcmdExec{Command: path, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
}
