package docker

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"
)

// The files that certificates are in, in a directory of the environment's or of a context.
const (
	caFile   = "ca.pem"
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// environmentTLS is TLS as DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH ask for.
func environmentTLS(configDir string, verify bool) (*tls.Config, error) {
	dir := os.Getenv(client.EnvOverrideCertPath)
	if dir == "" {
		dir = configDir
	}
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
