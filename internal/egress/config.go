package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"time"
)

// A Config is what a Proxy is made from. Only Policy is needed.
type Config struct {
	Policy  *Policy
	Secrets []Secret
	// Log, when set, is called with every attempt when it has ended or was refused. It is
	// called from several goroutines and must not block.
	Log func(Attempt)
	// MaxConnections bounds connections at once, others are refused; 0 means 256.
	MaxConnections int
	// Roots verify the hosts of secrets; nil means this machine's.
	Roots *x509.CertPool
	// Resolve finds a name's addresses; nil means this machine's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that the policy has let through; nil means TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

// Bounds on what one connection may take.
const (
	defaultConnections = 256
	maxHeader          = 64 << 10
	maxHello           = 64 << 10
	maxLine            = 8 << 10
	maxStreams         = 32               // of HTTP/2, in one tunnel
	headerTimeout      = 30 * time.Second // for a request's or greeting's first bytes
	dialTimeout        = 20 * time.Second // for the names and all their addresses together
	idleTimeout        = 10 * time.Minute // of a connection on which nothing moves
)
