package docker

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
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
	endpoint.Host = cmp.Or(endpoint.Host, client.DefaultDockerHost)
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

// The files that certificates are in, in a directory of the environment's or of a context.
const (
	caFile   = "ca.pem"
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// environmentTLS is TLS as DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH ask for.
func environmentTLS(configDir string, verify bool) (*tls.Config, error) {
	dir := cmp.Or(os.Getenv(client.EnvOverrideCertPath), configDir)
	c, err := loadTLS(dir, !verify)
	if err == nil && c.RootCAs == nil && verify {
		err = fmt.Errorf("there is no %s", filepath.Join(dir, caFile))
	}
	if err != nil {
		return nil, fmt.Errorf("load Docker's TLS certificates: %w; %s", err, hints.TLS)
	}
	return c, nil
}

// contextTLS is TLS with the certificates of a context, and nil when it has none.
func contextTLS(dir string, skipVerify bool) (*tls.Config, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && !skipVerify {
		return nil, nil
	}
	c, err := loadTLS(dir, skipVerify)
	if err != nil {
		return nil, fmt.Errorf("its TLS certificates: %w; make the context again with docker context create", err)
	}
	return c, nil
}

// loadTLS reads the certificates in dir. A missing authority means the system's; a
// client certificate needs its key to count.
func loadTLS(dir string, skipVerify bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skipVerify}
	ca, err := readOptional(filepath.Join(dir, caFile))
	if err != nil {
		return nil, err
	}
	if ca != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s holds no certificate", filepath.Join(dir, caFile))
		}
	}
	cert, err := readOptional(filepath.Join(dir, certFile))
	if err != nil {
		return nil, err
	}
	key, err := readOptional(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	if cert == nil || key == nil {
		return c, nil
	}
	if encrypted(key) {
		return nil, fmt.Errorf("%s is encrypted with a passphrase, which cannot be typed in here: store it decrypted", filepath.Join(dir, keyFile))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s in %s: %w", certFile, keyFile, dir, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func readOptional(path string) ([]byte, error) {
	data, err := readBounded(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// encrypted reports whether a PEM key has a passphrase, in the old form or the new one.
func encrypted(key []byte) bool {
	block, _ := pem.Decode(key)
	return block != nil && (block.Headers["DEK-Info"] != "" || strings.HasPrefix(block.Type, "ENCRYPTED"))
}
