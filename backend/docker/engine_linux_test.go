package docker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
	"github.com/llmsandbox/llmsandbox/internal/testcert"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// ask makes a client, asks the engine for its version, and opens a hijacked stream: a
// builder's session, which needs no container.
func ask(t *testing.T, o ClientOptions) error {
	t.Helper()
	c, err := NewClient(&o)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := c.ServerVersion(t.Context(), client.ServerVersionOptions{})
	if err != nil {
		return dial.Explain(err)
	}
	if v.Version == "" || c.ClientVersion() == client.MaxAPIVersion && v.APIVersion != client.MaxAPIVersion {
		t.Errorf("version %+v, the client uses API %s, want Version not empty, ClientVersion != MaxAPIVersion or APIVersion = MaxAPIVersion", v, c.ClientVersion())
	}
	conn, err := c.DialHijack(t.Context(), "/session", "h2c", map[string][]string{
		"X-Docker-Expose-Session-Uuid": {t.Name()}, "X-Docker-Expose-Session-Name": {"test"},
	})
	if err != nil {
		return dial.Explain(err)
	}
	// The engine speaks first: the preface of HTTP/2.
	preface := make([]byte, 3)
	_, err = io.ReadFull(conn, preface)
	if err == nil && string(preface) != "PRI" {
		t.Errorf("the stream began with %q, want an error or preface = \"PRI\"", preface)
	}
	return errors.Join(err, conn.Close())
}

// freePort is an address on loopback that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// TestEngineOverTLS: a real daemon that wants client certificates, reached by
// environment and by context, and refused in each way that it can be.
func TestEngineOverTLS(t *testing.T) {
	authority, other := testcert.NewAuthority(t), testcert.NewAuthority(t)
	server := authority.Issue(t, "127.0.0.1", nil)
	files := t.TempDir()
	for name, content := range map[string][]byte{caFile: authority.PEM, certFile: server.Cert, keyFile: server.Key} {
		write(t, filepath.Join(files, name), content)
	}
	addr := freePort(t)
	fakeHome(t) // the daemon must not see the machine's configuration either
	testengine.PrivateDocker(t, "--host=tcp://"+addr, "--tlsverify", "--tlscacert="+filepath.Join(files, caFile),
		"--tlscert="+filepath.Join(files, certFile), "--tlskey="+filepath.Join(files, keyFile))

	good, foreign := certificates(t, authority), other.Issue(t, "x", nil)
	for _, c := range []struct {
		name  string
		certs map[string][]byte
		word  string // of the failure; none: it works
	}{
		{"fits", good, ""},
		{"wrong authority", map[string][]byte{caFile: other.PEM, certFile: good[certFile], keyFile: good[keyFile]}, "not signed by an authority"},
		{"no client certificate", map[string][]byte{caFile: authority.PEM}, "wants a client certificate"},
		{"another's client certificate", map[string][]byte{caFile: authority.PEM, certFile: foreign.Cert, keyFile: foreign.Key}, "client certificate"},
		{"no TLS", nil, "it wants TLS"},
	} {
		check := func(t *testing.T, err error) {
			t.Helper()
			if c.word == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *dial.Error
			if !errors.As(err, &e) || e.Kind != dial.TLS || !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), c.word) {
				t.Errorf("error %v, want one of TLS with %q", err, c.word)
			}
		}
		t.Run(c.name+"/environment", func(t *testing.T) {
			dir := fakeHome(t)
			for name, content := range c.certs {
				write(t, filepath.Join(dir, name), content)
			}
			t.Setenv("DOCKER_HOST", "tcp://"+addr)
			if c.certs != nil {
				t.Setenv("DOCKER_TLS_VERIFY", "1")
			}
			check(t, ask(t, ClientOptions{}))
		})
		t.Run(c.name+"/context", func(t *testing.T) {
			dir := fakeHome(t)
			writeContext(t, dir, "secure", "tcp://"+addr, c.certs)
			check(t, ask(t, ClientOptions{Context: "secure"}))
		})
	}
	t.Run("context of the docker command", func(t *testing.T) {
		docker, err := exec.LookPath("docker")
		if err != nil {
			testimage.Must(t, testimage.Lack("this test needs the docker command"))
		}
		fakeHome(t)
		certs := t.TempDir()
		for name, content := range good {
			write(t, filepath.Join(certs, name), content)
		}
		for _, args := range [][]string{
			{"context", "create", "made", "--docker", fmt.Sprintf("host=tcp://%s,ca=%s/%s,cert=%s/%s,key=%s/%s", addr, certs, caFile, certs, certFile, certs, keyFile)},
			{"context", "use", "made"},
		} {
			if out, err := exec.Command(docker, args...).CombinedOutput(); err != nil {
				t.Fatalf("docker %q: %v: %s", args, err, out)
			}
		}
		if err := ask(t, ClientOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestDiagnose of a real engine, and of one that is not there.
func TestDiagnose(t *testing.T) {
	fakeHome(t)
	e := testengine.PrivateDocker(t)
	all := Diagnose(t.Context(), &ClientOptions{Host: e.Host})
	var checks []string
	for _, f := range all {
		checks = append(checks, f.Check)
		if f.Level == backend.LevelFailure || f.Detail == "" || (f.Level == backend.LevelOK) != (f.Fix == "") {
			t.Errorf("%+v, want Level != LevelFailure, Detail not empty, f.Level == backend.LevelOK = %v", f, f.Fix == "")
		}
	}
	const want = "configuration|socket|permission|answer|API version|platform|cgroup|limits|storage|rootless|seccomp|confinement|runtimes"
	if got := strings.Join(checks, "|"); got != want {
		t.Errorf("checks %s, want %s", got, want)
	}
	t.Setenv("DOCKER_API_VERSION", "1.40")
	all = Diagnose(t.Context(), &ClientOptions{Host: e.Host})
	if last := all[len(all)-2]; last.Check != "API version" || last.Level != backend.LevelFailure || last.Fix == "" {
		t.Errorf("with an old version of the API: %+v, want Check = \"API version\", Level = LevelFailure, Fix not empty", all)
	}
	if err := os.Unsetenv("DOCKER_API_VERSION"); err != nil {
		t.Fatal(err)
	}
	e.Stop(t)
	all = Diagnose(t.Context(), &ClientOptions{Host: e.Host})
	if last := all[len(all)-1]; len(all) != 2 || last.Check != "socket" || last.Level != backend.LevelFailure || !strings.Contains(last.Fix, "systemctl start docker") {
		t.Errorf("without a daemon: %+v, want len(all) = 2, Check = \"socket\", Level = LevelFailure, Fix containing \"systemctl start docker\"", all)
	}
}
