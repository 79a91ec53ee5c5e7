package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/llmsandbox/llmsandbox/backend"
)

// explainConnection explains why an API server could not be asked at all.
func explainConnection(e *Error, err error) {
	e.Why = cut(err.Error())
	server := "the API server"
	var where *url.Error
	if errors.As(err, &where) {
		if u, parsed := url.Parse(where.URL); parsed == nil {
			server = fmt.Sprintf("the API server at %s://%s", u.Scheme, u.Host)
		}
		err = where.Err
	}
	why, fix := connectionFault(err)
	if why == "" {
		return
	}
	e.Kind, e.Fix = backend.ErrUnsupported, fix
	e.Why = fmt.Sprintf("%s %s: %s", server, why, cut(err.Error()))
}

// connectionFault returns what is wrong with a connection, and what to do; nothing when
// the error is none of a connection.
func connectionFault(err error) (why, fix string) {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		broken    x509.CertificateInvalidError
		plain     tls.RecordHeaderError
		alert     tls.AlertError
		dns       *net.DNSError
		network   net.Error
	)
	text := err.Error()
	switch {
	case strings.Contains(text, "getting credentials: exec:"):
		return "was not asked: the program that gives the credentials failed", "run it by hand (the kubeconfig's users: exec:), and log in again"
	case errors.As(err, &authority):
		return "shows a certificate of an authority that the kubeconfig does not trust", "get a new kubeconfig from the cluster's administrator: its certificate-authority-data is another cluster's, or somebody is in between"
	case errors.As(err, &hostname):
		return "shows a certificate for other names", "correct the server's address in the kubeconfig, or give the name with tls-server-name"
	case errors.As(err, &broken) && broken.Reason == x509.Expired:
		return "shows a certificate that is not valid now", "see that this machine's clock is right; if it is, the cluster's administrator must renew the certificate"
	case errors.As(err, &broken):
		return "shows a certificate that cannot be used", "the cluster's administrator must replace the certificate"
	case errors.As(err, &alert), strings.Contains(text, "remote error: tls:"):
		return "refuses this client's certificate", "the client certificate in the kubeconfig is wrong or has expired: get a new kubeconfig"
	case errors.As(err, &plain), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "does not speak TLS", "correct the server's address in the kubeconfig: its port, or http in place of https"
	case errors.As(err, &dns):
		return "has a name that cannot be resolved", "see whether the address in the kubeconfig is right, and whether this machine needs a VPN"
	case strings.Contains(text, "proxyconnect"):
		return "cannot be reached through the proxy", "see HTTPS_PROXY and NO_PROXY, or the kubeconfig's proxy-url"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot be reached", "see whether the cluster runs, and whether the address in the kubeconfig is right"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached", "see whether this machine's network reaches it, and whether it needs a VPN"
	case errors.As(err, &network) && network.Timeout():
		return "does not answer", "see whether a firewall is in between, and whether this machine needs a VPN"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "connection lost"),
		strings.Contains(text, "server closed idle connection"): // a moment before it was used
		return "ended the connection", "it may be starting again: try again"
	}
	return "", ""
}
