package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// An authority signs certificates for the hosts of secrets, for one sandbox. Its key is
// in memory only, and its certificate is good for those hosts only.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte

	mu     sync.Mutex
	leaves map[target]*tls.Certificate
}

const (
	authorityLife = 5 * 365 * 24 * time.Hour
	leafLife      = 30 * 24 * time.Hour
	leafRenewal   = 24 * time.Hour // before its end a leaf is made anew
	maxLeaves     = 256
)

func newAuthority(hosts []rule) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the sandbox's certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "llmsandbox secrets"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,

		PermittedDNSDomainsCritical: true,
	}
	for _, r := range hosts {
		if name := r.name + r.domain; name != "" {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, name)
		}
	}
	for _, addr := range addresses(hosts) {
		template.PermittedIPRanges = append(template.PermittedIPRanges,
			&net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())})
	}
	if len(template.PermittedIPRanges) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	a := &authority{key: key, leaves: map[target]*tls.Certificate{}}
	der, err := a.sign(template, template, key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate of the sandbox's authority: %w", err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

func (a *authority) sign(template, parent *x509.Certificate, subject *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serial number of a certificate: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &subject.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

// leaf is the certificate for t.
func (a *authority) leaf(t target) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[t]; c != nil && time.Until(c.Leaf.NotAfter) > leafRenewal {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key for %s: %w", t, err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: clipCommonName(t.String())},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if t.addr.IsValid() {
		template.IPAddresses = []net.IP{t.addr.AsSlice()}
	} else {
		template.DNSNames = []string{t.name}
	}
	der, err := a.sign(template, a.cert, key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", t, err)
	}
	if len(a.leaves) >= maxLeaves { // of a wildcard's many names
		clear(a.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}
	a.leaves[t] = c
	return c, nil
}

// clipCommonName bounds a common name as X.509 does; names count elsewhere.
func clipCommonName(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

// serverConfig is for answering in the place of t.
func (a *authority) serverConfig(t target) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.leaf(t)
		},
	}
}
