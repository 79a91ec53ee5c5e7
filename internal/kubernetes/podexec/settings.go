package podexec

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// connectTimeout bounds how long one connection to the API server may take to be made.
const connectTimeout = 30 * time.Second

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// settings are how the API server is reached.
type settings struct {
	config *rest.Config
	tls    *tls.Config
	proxy  func(*http.Request) (*url.URL, error)
	dial   dialFunc
}

// readSettings reads what a configuration names. Certificates may be files that another program
// renews, so it is done for each stream.
func readSettings(c *rest.Config) (settings, error) {
	tc, err := c.TransportConfig()
	if err != nil {
		return settings{}, err
	}
	s := settings{config: c, proxy: tc.Proxy}
	if s.tls, err = transport.TLSConfigFor(tc); err != nil {
		return settings{}, err
	}
	if s.proxy == nil {
		s.proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	s.dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	if tc.DialHolder != nil && tc.DialHolder.Dial != nil {
		s.dial = tc.DialHolder.Dial
	}
	return s, nil
}

// trip adds the configuration's credentials to what t is asked for.
func (s settings) trip(t http.RoundTripper, ctx context.Context, method, url string, h http.Header) (*http.Response, error) {
	rt, err := rest.HTTPWrappersForConfig(s.config, t)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = h
	return rt.RoundTrip(req)
}
