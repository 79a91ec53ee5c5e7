package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// variables are all that the search for an engine looks at.
var variables = []string{
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
	"DOCKER_API_VERSION", "DOCKER_CUSTOM_HEADERS", "DOCKER_AUTH_CONFIG",
}

// fakeHome gives the test an empty home and none of Docker's variables, and returns
// the directory of Docker's configuration there.
func fakeHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, v := range variables {
		t.Setenv(v, "") // for it to be put back
		if err := os.Unsetenv(v); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(home, ".docker")
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeConfig(t *testing.T, dir, content string) {
	t.Helper()
	write(t, filepath.Join(dir, "config.json"), []byte(content))
}

// writeContext makes a context as docker context create does; certificates are by
// their files' names.
func writeContext(t *testing.T, dir, name, host string, certificates map[string][]byte) {
	t.Helper()
	meta := map[string]any{"Name": name, "Metadata": map[string]any{}, "Endpoints": map[string]any{
		"docker": map[string]any{"Host": host, "SkipTLSVerify": false},
	}}
	data, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	write(t, metaPath(dir, name), data)
	for file, content := range certificates {
		write(t, filepath.Join(dir, "contexts", "tls", contextID(name), "docker", file), content)
	}
}
