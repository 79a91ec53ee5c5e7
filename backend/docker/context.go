package docker

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/moby/moby/client"
)

const (
	contextsDir = "contexts"
	// maxContextFile bounds a file of a context, in bytes, and maxContexts how many
	// contexts an error names.
	maxContextFile = 1 << 20
	maxContexts    = 20
)

// contextMeta is what matters of a context's meta.json.
type contextMeta struct {
	Name      string
	Endpoints map[string]struct {
		Host          string
		SkipTLSVerify bool
	}
}

// contextID is the name of a context's directory.
func contextID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// metaPath is the file that describes a context.
func metaPath(dir, name string) string {
	return filepath.Join(dir, contextsDir, "meta", contextID(name), "meta.json")
}

// readContext returns the host and the certificates of the context called name, which
// source names. Without a host it is the default one.
func readContext(dir, name, source string) (string, *tls.Config, error) {
	fail := func(err error) (string, *tls.Config, error) {
		return "", nil, fmt.Errorf("use the Docker context %q (%s): %w", name, source, err)
	}
	meta, err := readMeta(metaPath(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return fail(fmt.Errorf("there is no such context in %s; %s", dir, knownContexts(dir)))
	}
	if err != nil {
		return fail(err)
	}
	endpoint, ok := meta.Endpoints["docker"]
	if !ok {
		return fail(errors.New("it names no Docker engine; name another context, or make it again with docker context create"))
	}
	if endpoint.Host == "" {
		endpoint.Host = client.DefaultDockerHost
	}
	if !overTCP(endpoint.Host) {
		return endpoint.Host, nil, nil
	}
	session, err := contextTLS(filepath.Join(dir, contextsDir, "tls", contextID(name), "docker"), endpoint.SkipTLSVerify)
	if err != nil {
		return fail(err)
	}
	return endpoint.Host, session, nil
}

func readMeta(path string) (contextMeta, error) {
	var m contextMeta
	data, err := readBounded(path)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w; make the context again with docker context create", path, err)
	}
	return m, nil
}

// readBounded reads a file that must not be larger than maxContextFile.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxContextFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxContextFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxContextFile)
	}
	return data, nil
}

// knownContexts is a sentence that names the contexts there are.
func knownContexts(dir string) string {
	names := []string{defaultContext}
	// What cannot be read is not among the known ones.
	files, _ := filepath.Glob(filepath.Join(dir, contextsDir, "meta", "*", "meta.json"))
	for _, file := range files {
		if m, err := readMeta(file); err == nil && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	sort.Strings(names)
	if len(names) > maxContexts {
		names = append(names[:maxContexts], "...")
	}
	return "known are: " + strings.Join(names, ", ")
}

// overTCP reports whether TLS can be meant for host.
func overTCP(host string) bool {
	scheme, _, _ := strings.Cut(host, "://")
	return scheme == "tcp" || scheme == "http" || scheme == "https"
}
