// Package trust makes the programs of a sandbox trust one more certificate authority
// beside those of their system: by environment variables and the files they name.
package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io/fs"
	"path"

	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
)

// systemBundles are where systems keep the certificates they trust, in PEM; the first
// that exists is the one.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch, Gentoo
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // SUSE
	"/etc/ssl/cert.pem",
}

// System is the bundle of the system that read reads files of, if one is found. Of a file
// that is not there read fails with fs.ErrNotExist; any other failure of it is returned.
func System(read func(name string) ([]byte, error)) (bundle []byte, found bool, err error) {
	for _, name := range systemBundles {
		b, err := read(name)
		switch {
		case err == nil:
			return b, true, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, false, err
		}
	}
	return nil, false, nil
}

// MaxBundle bounds how large a system's bundle may be.
const MaxBundle = 4 << 20

// Env are the variables, as NAME=VALUE, by which programs find the files of Files.
func Env(dir string) []string {
	bundle := bundlePath(dir)
	var env []string
	for _, name := range []string{
		"SSL_CERT_FILE",      // OpenSSL and what is built on it: Python, Ruby, wget; Go; rustls
		"REQUESTS_CA_BUNDLE", // Python's requests, which brings its own bundle
		"CURL_CA_BUNDLE",     // curl, and R by libcurl
		"GIT_SSL_CAINFO", "PIP_CERT", "NPM_CONFIG_CAFILE", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT",
		"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS", "PERL_LWP_SSL_CA_FILE",
	} {
		env = append(env, name+"="+bundle)
	}
	// Node adds it to its own, which are not those of the system.
	return append(env, "NODE_EXTRA_CA_CERTS="+authorityPath(dir))
}

// JavaFlags are what a JVM is started with: it reads no variable without saying so on
// stderr.
func JavaFlags(store string) []string {
	return []string{"-Djavax.net.ssl.trustStore=" + store, "-Djavax.net.ssl.trustStoreType=JKS", "-Djavax.net.ssl.trustStorePassword=" + storePassword}
}

// JavaStore is where the trust store of a JVM is.
func JavaStore(dir string) string { return path.Join(dir, "ca.jks") }

func bundlePath(dir string) string    { return path.Join(dir, "ca-bundle.pem") }
func authorityPath(dir string) string { return path.Join(dir, "ca.pem") }

// Files are the authority alone, and together with the system's for programs that
// take one file in the place of the system's: in PEM, and as a Java trust store. Of
// the system's bundle, which is of the sandbox and may hold anything, only what is
// marked as a certificate is taken.
func Files(dir string, authority, system []byte) []proxyenv.File {
	var all bytes.Buffer
	var store [][]byte
	for rest := append(bytes.Clone(authority), system...); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		block.Headers = nil
		_ = pem.Encode(&all, block) // to memory, without headers: never fails
		store = append(store, block.Bytes)
	}
	return []proxyenv.File{
		{Path: authorityPath(dir), Data: authority},
		{Path: bundlePath(dir), Data: all.Bytes()},
		{Path: JavaStore(dir), Data: javaStore(store)},
	}
}
