package e2b

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// Home is the working directory of sandboxes, which code for the protocol has written literally.
const Home = "/home/user"

// Labels of sandboxes. Their project can see and set them.
const (
	templateLabel = "e2b.template"
	metadataLabel = "e2b.metadata" // as JSON
	portsLabel    = "e2b.ports"    // likewise

	lifecycleLabel = "e2b.lifecycle" // likewise
)

// maxBody bounds the body of a request of the control plane.
const maxBody = 1 << 20

// ownTemplates are templates that are sandboxes with nothing but what the operator's have.
var ownTemplates = []string{"", "base", "code-interpreter-v1"}

// KeyPrefix begins the form of a key that SDKs take for one: hexadecimal digits follow, of the key itself.
const KeyPrefix = "e2b_"

// Key is a key in the form that all versions of the SDKs take.
func Key(key string) string { return KeyPrefix + hex.EncodeToString([]byte(key)) }

// keyOf is the key of a request.
func keyOf(r *http.Request) string {
	key := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && key == "" {
		key = bearer
	}
	return plainKey(key)
}

// plainKey is a key, whatever its form.
func plainKey(key string) string {
	if digits, ok := strings.CutPrefix(key, KeyPrefix); ok {
		if text, err := hex.DecodeString(digits); err == nil {
			return string(text)
		}
	}
	return key
}

// A request is one of the control plane by a known caller.
type request struct {
	*http.Request
	w      http.ResponseWriter
	caller database.Caller
	id     string // of the sandbox in its path, as this server has it
	made   string // the id of the sandbox that it has made
}

// read reads the JSON of a body; none is an empty object.
func (r *request) read(v any) error {
	text, refused := readBody(r.w, r.Request, maxBody)
	if refused == nil && len(text) > 0 {
		refused = decode(text, v)
	}
	if refused != nil {
		return refused
	}
	return nil
}

// An operation answers a request with a status and a body, nil for none.
type operation func(ctx context.Context, w http.ResponseWriter, r *request) (status int, answer any, err error)

func (s *Server) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	route := func(name string, do operation, patterns ...string) {
		for _, p := range patterns {
			mux.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) { s.serveControl(w, r, name, do) })
		}
	}
	route("create", s.create(300), "POST /v2/sandboxes")
	route("create", s.create(15), "POST /sandboxes")
	route("connect", s.connect, "POST /v2/sandboxes/{id}/connect", "POST /sandboxes/{id}/connect")
	route("pause", s.pause, "POST /sandboxes/{id}/pause")
	route("resume", s.resume, "POST /sandboxes/{id}/resume")
	route("info", s.info, "GET /sandboxes/{id}")
	route("kill", s.kill, "DELETE /sandboxes/{id}")
	route("timeout", s.timeout, "POST /sandboxes/{id}/timeout")
	route("refresh", s.refresh, "POST /sandboxes/{id}/refreshes")
	route("list", s.list, "GET /v2/sandboxes")
	route("list", s.listRunning, "GET /sandboxes")
	route("metrics", s.metrics, "GET /sandboxes/{id}/metrics")
	route("metrics", s.metricsOfMany, "GET /sandboxes/metrics")
	route("network", s.setNetwork, "PUT /sandboxes/{id}/network")
	route("snapshot", s.snapshot, "POST /sandboxes/{id}/snapshots")
	route("list", s.listSnapshots, "GET /snapshots")
	route("remove-template", s.removeTemplate, "DELETE /templates/{template}")
	route("request-build", s.requestBuild, "POST /v3/templates")
	route("request-upload", s.requestUpload, "GET /templates/{template}/files/{hash}")
	mux.HandleFunc("PUT /templates/{template}/files/{hash}", s.uploadForBuild)
	route("build-template", s.startBuild, "POST /v2/templates/{template}/builds/{build}")
	route("info", s.buildStatus, "GET /templates/{template}/builds/{build}/status")
	route("info", s.aboutTemplate, "GET /templates/{template}/{what}")
	route("tag-template", s.assignTags, "POST /templates/tags")
	route("remove-template", s.removeTags, "DELETE /templates/tags")
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, refusal(http.StatusNotImplemented, r.Method+" "+r.URL.Path+": this server does not have that"))
	})
	return mux
}

// beginners are the operations that begin something.
var beginners = []string{"create", "snapshot", "build-template"}

// readers are the operations for which a key that may read is enough.
var readers = []string{"info", "list", "metrics"}

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request, name string, do operation) {
	ctx := r.Context()
	in := &request{Request: r, w: w}
	status, body, err := func() (status int, answer any, err error) {
		if in.caller, err = s.cfg.Authenticate(ctx, keyOf(r)); errors.Is(err, httpgate.ErrUnknown) {
			return 0, nil, refusal(http.StatusUnauthorized, "the header X-API-KEY has no key that is known here")
		} else if err != nil {
			return 0, nil, err
		}
		reads := slices.Contains(readers, name)
		may := reads && in.caller.Has(database.ScopeRead) || !reads && in.caller.Has(database.ScopeWrite)
		outer, _, _ := strings.Cut(r.PathValue("id"), "-")
		in.id = innerID(outer)
		end, err := s.cfg.Begin(ctx, in.caller, name, in.id, may && slices.Contains(beginners, name))
		if err != nil {
			return 0, nil, err
		}
		switch {
		case !may:
			err = refusal(http.StatusForbidden, "the key does not have the scope for that")
		case r.PathValue("id") != "" && in.id == "":
			err = refusal(http.StatusNotFound, "the sandbox was not found")
		default:
			status, answer, err = do(ctx, w, in)
		}
		if err != nil {
			err = s.refusalOf(ctx, err)
			status = err.(*Refusal).Status //nolint:errorlint // it is one
		}
		end(status, in.made)
		return status, answer, err
	}()
	switch {
	case err != nil:
		answer(w, s.refusalOf(ctx, err))
	case body == nil:
		w.WriteHeader(status)
	default:
		send(w, status, body)
	}
}

// A newSandbox asks for one.
type newSandbox struct {
	Template   string            `json:"templateID"`
	Timeout    *float64          `json:"timeout"`
	Metadata   map[string]string `json:"metadata"`
	Env        map[string]string `json:"envVars"`
	AutoPause  bool              `json:"autoPause"`
	Memory     *bool             `json:"autoPauseMemory"`
	AutoResume struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	Internet   *bool              `json:"allow_internet_access"`
	Network    *network           `json:"network"`
	Identities map[string]any     `json:"iam"`
	Volumes    []newSandboxVolume `json:"volumeMounts"`
}

type newSandboxVolume struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// network is what a sandbox may reach. What is not here bounds nothing.
type network struct {
	Allow      []string        `json:"allowOut"`
	Deny       []string        `json:"denyOut"`
	Rules      map[string]any  `json:"rules"`
	Proxy      json.RawMessage `json:"egressProxy"`
	DNS        []string        `json:"dnsServers"`
	HTTPSPorts []int           `json:"httpsPorts"`
	Public     *bool           `json:"allowPublicTraffic"`
	Host       string          `json:"maskRequestHost"`
}

// everywhere is what a network denies that allows only what it names.
var everywhere = []string{"0.0.0.0/0", "::/0"}

// network is that of a request: what the operator allows, unless it asks for less.
func (s *Server) network(internet *bool, n *network) (llmsandbox.Network, error) {
	most := s.service.Sandbox().Network
	none := llmsandbox.Network{Mode: llmsandbox.NetworkNone}
	if n == nil {
		n = &network{}
	}
	for name, there := range map[string]bool{
		"rules": len(n.Rules) > 0, "egressProxy": len(n.Proxy) > 0 && string(n.Proxy) != "null", "dnsServers": len(n.DNS) > 0, "httpsPorts": len(n.HTTPSPorts) > 0,
	} {
		if there {
			return none, refusal(http.StatusBadRequest, "network."+name+": this server cannot do that")
		}
	}
	denied := internet != nil && !*internet
	for _, d := range n.Deny {
		if !slices.Contains(everywhere, d) {
			return none, refusal(http.StatusBadRequest, "network.denyOut: this server can deny 0.0.0.0/0 only, and then allow what allowOut names")
		}
		denied = true
	}
	switch {
	case !denied && slices.ContainsFunc(n.Allow, func(a string) bool { return strings.Trim(a, "0123456789abcdefABCDEF.:/") != "" }):
		return none, refusal(http.StatusBadRequest, "network.allowOut: names of hosts need 0.0.0.0/0 in denyOut")
	case !denied:
		return llmsandbox.Network{Mode: most.Mode, Allow: most.Allow}, nil
	case len(n.Allow) == 0:
		return none, nil
	}
	return llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: n.Allow}, nil
}

// A sandbox is one as SDKs see it.
type sandbox struct {
	ID       string  `json:"sandboxID"`
	Template string  `json:"templateID"`
	Client   string  `json:"clientID"`
	Version  string  `json:"envdVersion"`
	Token    string  `json:"envdAccessToken,omitempty"`
	Traffic  *string `json:"trafficAccessToken"`
	Domain   *string `json:"domain"`
	Alias    string  `json:"alias,omitempty"`
}

// clientID is in answers for old SDKs, which have it in ids.
const clientID = "llmsandbox"

// describe answers with a sandbox, of which it needs these labels.
func (s *Server) describe(r *request, id string, labels map[string]string) *sandbox {
	template := labels[templateLabel]
	d := &sandbox{ID: outerID(id), Template: template, Client: clientID, Version: envdVersion, Token: s.accessToken(id), Domain: s.domain(r), Alias: template}
	if p := portsOf(labels); p != nil && !p.Public {
		token := s.trafficToken(id)
		d.Traffic = &token
	}
	return d
}

// domain is the one below which sandboxes have names for who has sent a request, with the port by which it has reached the server; nil: there is none.
func (s *Server) domain(r *request) *string {
	if s.cfg.Domain == "" {
		return nil
	}
	domain := s.cfg.Domain
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		domain = net.JoinHostPort(domain, port)
	}
	return &domain
}

func (s *Server) create(seconds float64) operation {
	return func(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
		otherwise := seconds
		in := newSandbox{Timeout: &otherwise}
		if err := r.read(&in); err != nil {
			return 0, nil, err
		}
		labels, err := s.labels(&in)
		if err != nil {
			return 0, nil, err
		}
		made, _, err := service.Once(ctx, s.service, r.caller.Project, "", "e2b-create", r.Header.Get("Idempotency-Key"), &in, func(ctx context.Context) (string, error) {
			return s.open(ctx, r.caller.Project, &in, labels)
		})
		if err != nil {
			return 0, nil, err
		}
		r.made = made
		return http.StatusCreated, s.describe(r, made, labels), nil
	}
}

// labels are those of a new sandbox.
func (s *Server) labels(in *newSandbox) (map[string]string, error) {
	metadata, err := json.Marshal(in.Metadata)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{templateLabel: cmp.Or(in.Template, ownTemplates[1]), metadataLabel: string(metadata)}
	if l := (lifecycle{in.AutoPause, in.AutoResume.Enabled}); l != (lifecycle{}) {
		text, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		labels[lifecycleLabel] = string(text)
	}
	ports, err := s.ports(in.Network)
	if ports != "" {
		labels[portsLabel] = ports
	}
	return labels, err
}

// open opens a sandbox and returns its id.
func (s *Server) open(ctx context.Context, project string, in *newSandbox, labels map[string]string) (string, error) {
	switch {
	case in.Timeout == nil || *in.Timeout <= 0:
		return "", refusal(http.StatusBadRequest, "timeout: it must be more than 0 seconds")
	case in.Memory != nil && !*in.Memory:
		return "", refusal(http.StatusBadRequest, "autoPauseMemory: "+noFilePause)
	case len(in.Identities) > 0:
		return "", refusal(http.StatusBadRequest, "iam: this server gives sandboxes no identities")
	}
	network, err := s.network(in.Internet, in.Network)
	if err != nil {
		return "", err
	}
	o := llmsandbox.Options{Lifetime: s.lifetime(labels, *in.Timeout), Network: network, Workdir: Home, Labels: labels}
	text, err := s.fromTemplate(project, in.Template, &o)
	if err != nil {
		return "", err
	}
	if text != "" {
		labels[setupLabel] = text
	}
	has := setupOf(labels)
	o.Env, o.Limits = map[string]string{}, has.limits()
	maps.Copy(o.Env, has.Env)
	maps.Copy(o.Env, in.Env)
	for _, v := range in.Volumes {
		o.Volumes = append(o.Volumes, llmsandbox.VolumeMount{Name: v.Name, Target: v.Path})
	}
	sb, err := s.service.Create(ctx, project, o)
	if errors.Is(err, llmsandbox.ErrTemplateNotFound) {
		return "", noTemplate(in.Template)
	}
	if err != nil {
		return "", err
	}
	if err := s.begin(ctx, sb, project, &has); err != nil {
		return "", errors.Join(err, s.service.Remove(context.WithoutCancel(ctx), project, sb.ID()))
	}
	if err := s.checkPause(ctx, project, sb.ID(), labels); err != nil {
		return "", errors.Join(err, s.service.Remove(context.WithoutCancel(ctx), project, sb.ID()))
	}
	return sb.ID(), nil
}

// duration is a number of seconds, which is longer than any limit where no duration can hold it.
func duration(seconds float64) time.Duration {
	if !(seconds < math.MaxInt64/float64(time.Second)) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}

// find is the sandbox of a request.
func (s *Server) find(ctx context.Context, r *request) (backend.Info, error) {
	return s.service.Find(ctx, r.caller.Project, r.id)
}

func (s *Server) connect(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	in := struct {
		Timeout float64 `json:"timeout"`
		Memory  *bool   `json:"memory"`
	}{Timeout: defaultTimeout}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	i, err := s.find(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if i.Paused {
		if in.Memory != nil && !*in.Memory {
			return 0, nil, refusal(http.StatusBadRequest, "memory: this server starts no paused sandbox anew: it goes on with all that runs in it")
		}
		status = http.StatusCreated
		if err := s.service.Resume(ctx, r.caller.Project, i.ID); err != nil {
			return 0, nil, err
		}
	}
	if i, err = s.extend(ctx, r, in.Timeout); err != nil {
		return 0, nil, err
	}
	s.pauseAtTimeout(r.caller.Project, i.ID, i.Labels)
	return status, s.describe(r, i.ID, i.Labels), nil
}

// extend has a sandbox live for at least so many seconds from now.
func (s *Server) extend(ctx context.Context, r *request, seconds float64) (backend.Info, error) {
	i, err := s.find(ctx, r)
	if err != nil || i.Deadline.IsZero() || !time.Now().Add(duration(seconds)).After(timeoutOf(&i)) {
		return i, err
	}
	return i, s.setTimeout(ctx, r.caller.Project, &i, seconds)
}

func (s *Server) refresh(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Duration float64 `json:"duration"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	_, err := s.extend(ctx, r, in.Duration)
	return http.StatusNoContent, nil, err
}

func (s *Server) timeout(ctx context.Context, w http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Timeout float64 `json:"timeout"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	i, err := s.find(ctx, r)
	switch {
	case err != nil:
		return 0, nil, err
	case in.Timeout > 0:
		return http.StatusNoContent, nil, s.setTimeout(ctx, r.caller.Project, &i, in.Timeout)
	case lifecycleOf(i.Labels).Pause:
		return http.StatusNoContent, nil, s.service.Pause(ctx, r.caller.Project, i.ID)
	}
	return s.kill(ctx, w, r)
}

func (s *Server) kill(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	return http.StatusNoContent, nil, s.service.Remove(ctx, r.caller.Project, r.id)
}

func (s *Server) setNetwork(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Internet *bool `json:"allow_internet_access"`
		network
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	if in.Public != nil || in.Host != "" {
		return 0, nil, refusal(http.StatusBadRequest, "allowPublicTraffic, maskRequestHost: they are set when the sandbox is created")
	}
	n, err := s.network(in.Internet, &in.network)
	if err != nil {
		return 0, nil, err
	}
	sb, err := s.service.Get(ctx, r.caller.Project, r.id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, s.service.SetNetwork(ctx, sb, n)
}

// A listed is a sandbox as lists have it.
type listed struct {
	Template string            `json:"templateID"`
	Alias    string            `json:"alias,omitempty"`
	ID       string            `json:"sandboxID"`
	Client   string            `json:"clientID"`
	Started  time.Time         `json:"startedAt"`
	End      time.Time         `json:"endAt"`
	CPUs     int               `json:"cpuCount"`
	Memory   int64             `json:"memoryMB"`
	Disk     int64             `json:"diskSizeMB"`
	State    string            `json:"state"`
	Version  string            `json:"envdVersion"`
	Metadata map[string]string `json:"metadata"`
	Token    string            `json:"envdAccessToken,omitempty"` // not in lists
	Domain   *string           `json:"domain,omitempty"`

	Lifecycle *listedLifecycle `json:"lifecycle,omitempty"` // not in lists
	PauseMode string           `json:"pauseMode,omitempty"` // of one that is paused
}

type listedLifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

const running, paused = "running", "paused"

func describeListed(i *backend.Info) listed {
	const mega = 1 << 20
	metadata := map[string]string{}
	_ = json.Unmarshal([]byte(i.Labels[metadataLabel]), &metadata) // none, where the API has made the sandbox
	l := listed{
		Template: i.Labels[templateLabel], Alias: i.Labels[templateLabel], ID: outerID(i.ID), Client: clientID, Started: i.Created.UTC(), End: timeoutOf(i).UTC(),
		CPUs: max(int(math.Ceil(i.Limits.CPUs)), 1), Memory: max(i.Limits.Memory, 0) / mega, Disk: max(i.Limits.Disk, 0) / mega, State: running, Version: envdVersion, Metadata: metadata,
	}
	if i.Paused {
		l.State, l.PauseMode = paused, "full"
	}
	return l
}

func (s *Server) info(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	i, err := s.find(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	d := describeListed(&i)
	d.Token, d.Domain = s.accessToken(i.ID), s.domain(r)
	if of := lifecycleOf(i.Labels); of != (lifecycle{}) {
		d.Lifecycle = &listedLifecycle{of.Resume, "kill"}
		if of.Pause {
			d.Lifecycle.OnTimeout = "pause"
		}
	}
	return http.StatusOK, d, nil
}

func (s *Server) listRunning(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	q := r.URL.Query()
	q.Set("order", "asc")
	q.Set("state", running)
	all, err := s.matching(ctx, r, q)
	return http.StatusOK, all, err
}

const maxPage = 100

// limitOf is how many a query asks for.
func limitOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return maxPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, refusal(http.StatusBadRequest, "limit: use a number from 1 to "+strconv.Itoa(maxPage))
	}
	return n, nil
}

func (s *Server) list(ctx context.Context, w http.ResponseWriter, r *request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return 0, nil, err
	}
	all, err := s.matching(ctx, r, q)
	if err != nil {
		return 0, nil, err
	}
	n := 0
	for i := range all {
		if all[i].State == running {
			n++
		}
	}
	w.Header().Set("X-Total-Running", strconv.Itoa(n))
	if text := q.Get("nextToken"); text != "" {
		after, ok := parseCursor(text)
		if !ok {
			return 0, nil, refusal(http.StatusBadRequest, "nextToken: it is none of this server's")
		}
		at := slices.IndexFunc(all, func(l listed) bool { return order(q)(l, after) > 0 })
		if at < 0 {
			at = len(all)
		}
		all = all[at:]
	}
	if len(all) > limit {
		all = all[:limit]
		last := all[limit-1]
		w.Header().Set("X-Next-Token", base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(last.Started.UnixNano(), 10)+" "+last.ID)))
	}
	return http.StatusOK, all, nil
}

// parseCursor is what an element of a list is compared by.
func parseCursor(text string) (after listed, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	nanos, id, found := strings.Cut(string(raw), " ")
	n, nerr := strconv.ParseInt(nanos, 10, 64)
	return listed{Started: time.Unix(0, n).UTC(), ID: id}, err == nil && nerr == nil && found
}

// order compares elements of a list as its query says, by default the newest first.
func order(q url.Values) func(a, b listed) int {
	compare := func(a, b listed) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) }
	if q.Get("order") == "asc" {
		return compare
	}
	return func(a, b listed) int { return compare(b, a) }
}

// matching are a project's sandboxes that a query asks for.
func (s *Server) matching(ctx context.Context, r *request, q url.Values) ([]listed, error) {
	wanted, err := metadataOf(q.Get("metadata"))
	if err != nil {
		return nil, err
	}
	var since time.Time
	if text := q.Get("startedAfter"); text != "" {
		if since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, refusal(http.StatusBadRequest, "startedAfter: use a time as of RFC 3339")
		}
	}
	states := strings.FieldsFunc(strings.Join(q["state"], ","), func(c rune) bool { return c == ',' })
	infos, err := s.service.List(ctx, r.caller.Project)
	if err != nil {
		return nil, err
	}
	all := []listed{}
	for i := range infos {
		l := describeListed(&infos[i])
		// SDKs have micro- or milliseconds.
		old := !since.IsZero() && l.Started.Truncate(time.Millisecond).Before(since.Truncate(time.Millisecond))
		other := q.Get("template") != "" && q.Get("template") != l.Template
		if infos[i].Labels[templateLabel] == "" || old || other || len(states) > 0 && !slices.Contains(states, l.State) {
			continue
		}
		matches := true
		for name, value := range wanted {
			has, ok := l.Metadata[name]
			matches = matches && ok && has == value
		}
		if matches {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, order(q))
	return all, nil
}

// metadataOf parses a filter: a query, whose names and values are escaped once more.
func metadataOf(text string) (map[string]string, error) {
	bad := refusal(http.StatusBadRequest, "metadata: it is no query of names and values")
	pairs, err := url.ParseQuery(text)
	if err != nil {
		return nil, bad
	}
	wanted := map[string]string{}
	for name, values := range pairs {
		n, nerr := url.PathUnescape(name)
		v, verr := url.PathUnescape(values[0])
		if nerr != nil || verr != nil {
			return nil, bad
		}
		wanted[n] = v
	}
	return wanted, nil
}
