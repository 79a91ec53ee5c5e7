package e2b

import (
	"crypto/hmac"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// A Port is the one of a sandbox that a request is for.
type Port struct {
	Project string
	Sandbox *llmsandbox.Sandbox
	Port    uint16
	Host    string // the server inside is asked for it
}

// ports say who may use the ports of a sandbox by their names, as its label has it. A sandbox without that label has no such ports.
type ports struct {
	Public bool   `json:"public"` // to anyone who knows the name
	Host   string `json:"host,omitempty"`
}

// portVariable stands for the number of the port in a host.
const portVariable = "${PORT}"

// valid reports whether the host is none or a name, with or without a port.
func (p *ports) valid() bool {
	const most, ordinary = 255, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	name, port, there := strings.Cut(strings.ReplaceAll(p.Host, portVariable, "1"), ":")
	_, err := strconv.ParseUint(port, 10, 16)
	return p.Host == "" || name != "" && len(p.Host) <= most && strings.Trim(name, ordinary) == "" && (!there || err == nil)
}

// ports are those of a new sandbox, as its label has them; empty: there is no label.
func (s *Server) ports(n *network) (string, error) {
	if n == nil {
		n = &network{}
	}
	p := ports{Public: n.Public == nil || *n.Public, Host: n.Host}
	switch {
	case s.cfg.Domain == "" && p.Host != "":
		return "", refusal(http.StatusBadRequest, "network.maskRequestHost: this server has no domain for ports: --ports-domain")
	case s.cfg.Domain == "" && p.Public:
		return "", nil // a domain that the server has one day does not make it public
	case !p.valid():
		return "", refusal(http.StatusBadRequest, "network.maskRequestHost: use the name of a host, with a port if need be, and "+portVariable+" for that of the request")
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// portsOf are those in labels; nil: there are none.
func portsOf(labels map[string]string) *ports {
	text, there := labels[portsLabel]
	p := &ports{}
	if !there || json.Unmarshal([]byte(text), p) != nil || !p.valid() { // a label can be anybody's of the project
		return nil
	}
	return p
}

// trafficToken is what the ports of a sandbox ask for where they are not public.
func (s *Server) trafficToken(id string) string { return s.token("traffic", id) }

func (s *Server) hasTrafficToken(r *http.Request, id string) bool {
	return hmac.Equal([]byte(r.Header.Get(trafficHeader)), []byte(s.trafficToken(id)))
}

// mayUsePorts reports whether a request may use the ports of a sandbox with these labels, as far as there are any.
func (s *Server) mayUsePorts(r *http.Request, id string, labels map[string]string) bool {
	p := portsOf(labels)
	return p == nil || p.Public || s.hasTrafficToken(r, id)
}

const trafficRefusal = "the ports of this sandbox are not public: the header e2b-traffic-access-token is not its token for them"

// servePort answers a request for a server inside a sandbox, by the name of its port.
func (s *Server) servePort(w http.ResponseWriter, r *http.Request) {
	p, err := s.place(r)
	if err == nil && r.Method == http.MethodConnect {
		err = refusal(http.StatusMethodNotAllowed, "a port is no proxy")
	}
	if err != nil {
		answer(w, err)
		return
	}
	t, err := s.target(r.Context(), p.id, s.hasTrafficToken(r, p.id))
	if err != nil {
		s.answerGone(w, r, p.id, err)
		return
	}
	labels := t.sandbox.Labels()
	of := portsOf(labels)
	switch {
	case of == nil:
		answer(w, refusal(http.StatusForbidden, "the ports of this sandbox have no names for SDKs: the API has made it, or the server had no domain for them then"))
		return
	case !s.mayUsePorts(r, p.id, labels):
		answer(w, refusal(http.StatusForbidden, trafficRefusal))
		return
	}
	if err := s.wakeFor(r.Context(), t, true); err != nil {
		s.answerGone(w, r, p.id, err)
		return
	}
	to := &Port{Project: t.project, Sandbox: t.sandbox, Port: uint16(p.port), Host: r.Host} //nolint:gosec // it is from 16 bits
	if of.Host != "" {
		to.Host = strings.ReplaceAll(of.Host, portVariable, strconv.Itoa(p.port))
	}
	switch err := s.cfg.Port(w, s.forInside(r), to); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		send(w, http.StatusBadGateway, struct {
			SandboxID string `json:"sandboxId"`
			Message   string `json:"message"`
			Port      int    `json:"port"`
			Code      int    `json:"code"`
		}{outerID(p.id), closedMessage, p.port, http.StatusBadGateway})
	default:
		s.answerGone(w, r, p.id, err)
	}
}

// closedMessage is that of a port where nothing listens, literally.
const closedMessage = "The sandbox is running but port is not open"

// forInside is a request without what it has for this server. Servers inside may take _ for - in names.
func (s *Server) forInside(r *http.Request) *http.Request {
	inside := r.Clone(r.Context())
	for name := range inside.Header {
		plain := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(plain, sdkHeaders) || plain == tokenHeader || plain == "X-Api-Key" {
			delete(inside.Header, name)
		}
	}
	// This header is for the server inside, unless it has a key of this one.
	const header = "Authorization"
	if values := inside.Header.Values(header); len(values) > 0 {
		_, key, _ := strings.Cut(values[0], " ")
		if _, err := s.cfg.Authenticate(r.Context(), plainKey(strings.TrimSpace(key))); len(values) > 1 || !errors.Is(err, httpgate.ErrUnknown) {
			inside.Header.Del(header)
		}
	}
	return inside
}
