package docker

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

// certificates are the three files of a client that authority knows.
func certificates(t *testing.T, authority *testcert.Authority) map[string][]byte {
	t.Helper()
	mine := authority.Issue(t, "client", nil)
	return map[string][]byte{caFile: authority.PEM, certFile: mine.Cert, keyFile: mine.Key}
}

func TestCertificates(t *testing.T) {
	files := certificates(t, testcert.NewAuthority(t))
	type state struct{ tls, verified, authority, client bool }
	for _, c := range []struct {
		name  string
		env   map[string]string
		files []string // in ~/.docker
		certs []string // in DOCKER_CERT_PATH
		want  state
		word  string // of the error
	}{
		{name: "none", files: []string{caFile, certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1"}},
		{name: "verified", files: []string{caFile, certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1"},
			want: state{true, true, true, true}},
		{name: "verified by any value", files: []string{caFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "0"},
			want: state{true, true, true, false}},
		{name: "not verified", files: []string{caFile, certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS": "1"},
			want: state{true, false, true, true}},
		{name: "certificate path", certs: []string{caFile, certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1"},
			want: state{true, true, true, true}},
		{name: "certificate path alone", certs: []string{caFile, certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1"}},
		{name: "socket", env: map[string]string{"DOCKER_HOST": "unix:///s", "DOCKER_TLS_VERIFY": "1"}},
		{name: "no authority", files: []string{certFile, keyFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1"},
			word: "there is no"},
		{name: "no key", files: []string{caFile, certFile}, env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1"},
			want: state{true, true, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeHome(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			for _, f := range c.files {
				write(t, filepath.Join(dir, f), files[f])
			}
			if c.certs != nil {
				other := t.TempDir()
				t.Setenv("DOCKER_CERT_PATH", other)
				for _, f := range c.certs {
					write(t, filepath.Join(other, f), files[f])
				}
			}
			f, err := ClientOptions{}.find()
			if c.word != "" {
				if err == nil || !strings.Contains(err.Error(), c.word) || !strings.Contains(err.Error(), "DOCKER_CERT_PATH") {
					t.Errorf("error %v, want one with %q", err, c.word)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got state
			if s := f.endpoint.TLS; s != nil {
				got = state{true, !s.InsecureSkipVerify, s.RootCAs != nil, len(s.Certificates) == 1}
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestDefaultHostUnderTLS: with DOCKER_TLS_VERIFY alone the engine is this machine's,
// over TCP.
func TestDefaultHostUnderTLS(t *testing.T) {
	dir := fakeHome(t)
	for name, content := range certificates(t, testcert.NewAuthority(t)) {
		write(t, filepath.Join(dir, name), content)
	}
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	f, err := ClientOptions{}.find()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(f.endpoint.Host, "tcp://") || !strings.HasSuffix(f.endpoint.Host, ":2376") || f.endpoint.TLS == nil {
		t.Errorf("found %+v, want Host beginning with \"tcp://\", Host ending in \":2376\", TLS not nil", f)
	}
}

func TestCertificatesOfContexts(t *testing.T) {
	dir := fakeHome(t)
	authority := testcert.NewAuthority(t)
	files := certificates(t, authority)
	block, _ := pem.Decode(files[keyFile])
	legacy := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES-256-CBC,00"}, Bytes: block.Bytes})
	sealed := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: block.Bytes})
	for _, c := range []struct {
		name  string
		files map[string][]byte
		word  string
	}{
		{"all", files, ""},
		{"authority alone", map[string][]byte{caFile: files[caFile]}, ""},
		{"old passphrase", map[string][]byte{certFile: files[certFile], keyFile: legacy}, "passphrase"},
		{"new passphrase", map[string][]byte{certFile: files[certFile], keyFile: sealed}, "passphrase"},
		{"bad authority", map[string][]byte{caFile: []byte("x")}, "holds no certificate"},
		{"another's key", map[string][]byte{certFile: files[certFile], keyFile: authority.Issue(t, "x", nil).Key}, "private key does not match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			writeContext(t, dir, c.name, "tcp://h:1", c.files)
			f, err := ClientOptions{Context: c.name}.find()
			if c.word != "" {
				if err == nil || !strings.Contains(err.Error(), c.word) {
					t.Errorf("error %v, want one with %q", err, c.word)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := f.endpoint.TLS
			if s == nil || s.InsecureSkipVerify || (len(s.Certificates) == 1) != (c.files[keyFile] != nil) {
				t.Fatalf("%+v, want s not nil, InsecureSkipVerify false, len(s.Certificates) == 1 = (c.files[keyFile] != nil)", s)
			}
			if want := authority.Pool(); !s.RootCAs.Equal(want) {
				t.Error("the context's authority is not the one that is trusted: s.RootCAs.Equal(want) = false, want true")
			}
		})
	}
	t.Run("not verified", func(t *testing.T) {
		write(t, metaPath(dir, "loose"), []byte(`{"Name":"loose","Endpoints":{"docker":{"Host":"tcp://h:1","SkipTLSVerify":true}}}`))
		f, err := ClientOptions{Context: "loose"}.find()
		if err != nil || f.endpoint.TLS == nil || !f.endpoint.TLS.InsecureSkipVerify {
			t.Errorf("%+v, %v, want no error, TLS not nil, InsecureSkipVerify true", f.endpoint.TLS, err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		writeContext(t, dir, "folder", "tcp://h:1", nil)
		if err := os.MkdirAll(filepath.Join(dir, "contexts", "tls", contextID("folder"), "docker", keyFile), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := (ClientOptions{Context: "folder"}).find(); err == nil || !strings.Contains(err.Error(), keyFile) {
			t.Errorf("a directory for a key: %v, want an error containing %q", err, keyFile)
		}
	})
}
