// Package proxyenv is what makes programs in a sandbox use the proxy on its loopback:
// environment variables, and files where a toolchain reads no variable.
package proxyenv

import (
	_ "embed"
	"path"
)

// Address is the variable that has the proxy's address as it is.
const Address = "LLMSANDBOX_PROXY"

// A File is one that must be inside before programs start.
type File struct {
	Path string // absolute
	Data []byte
}

//go:embed node.cjs
var nodePreload []byte

// Setup returns the environment, as NAME=VALUE, and the files for a proxy at address
// (host:port), which speaks HTTP and SOCKS5. The files are below dir.
//
// ALL_PROXY names HTTP too: Python's httpx, which clients of language models are built
// on, does not start at all where it finds a SOCKS proxy and its library for that is
// missing. Who wants SOCKS5 finds the address in LLMSANDBOX_PROXY.
func Setup(address, dir string) ([]string, []File) {
	proxy := "http://" + address
	const direct = "localhost,127.0.0.1,::1"
	preload := File{Path: path.Join(dir, "node-proxy.cjs"), Data: nodePreload}
	return []string{
		"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy, "NO_PROXY=" + direct,
		"http_proxy=" + proxy, "https_proxy=" + proxy, "all_proxy=" + proxy, "no_proxy=" + direct,
		Address + "=" + address,
		// Node reads the variables above from version 22.21 and 24 on when NODE_USE_ENV_PROXY is set.
		// In older ones the preloaded file does.
		"NODE_USE_ENV_PROXY=1", "NODE_OPTIONS=--require=" + preload.Path,
	}, []File{preload}
}

// JavaFlags are what a JVM is started with: it reads no variable without saying so on
// stderr.
func JavaFlags(host, port string) []string {
	const direct = "localhost|127.*|[::1]"
	return []string{
		"-Dhttp.proxyHost=" + host, "-Dhttp.proxyPort=" + port, "-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port,
		"-Dhttp.nonProxyHosts=" + direct, "-DsocksProxyHost=" + host, "-DsocksProxyPort=" + port, "-DsocksNonProxyHosts=" + direct,
	}
}
