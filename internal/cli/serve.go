package cli

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/e2b"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/limit"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

func newServeCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve sandboxes over HTTP",
		Long: `Serve sandboxes to programs that speak HTTP. Your flags set what sandboxes may do; requests can
ask for less. The API is described at /openapi.json. At /mcp, clients of the Model Context Protocol
have the tools of llmsandbox mcp. In a browser, / is a console.

On loopback, a server without keys prints one that ends with it, and a link that logs in a browser.
Others need keys from serve key create, and a certificate (--tls-cert) or a proxy that has one.

Created sandboxes live on for the next server; with --until-stdin-closes, they end with this one.`,
		Example: `  llmsandbox serve
  llmsandbox serve key create ci --project builds
  llmsandbox serve --listen 0.0.0.0:8321 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, err := f.lifetime(cmd.Context(), cmd.Flags())
			if err != nil {
				return err
			}
			err = f.serve(ctx)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was asked to end, and has
			}
			return opening(cmd.Context(), &f.place, f.image, err)
		},
	}
	f.register(cmd.Flags())
	cmd.AddCommand(newServeKeyCommand(), newServeAuditCommand(), newServeLogoutCommand())
	return cmd
}

// serveFlags are what the operator of a server sets.
type serveFlags struct {
	sandboxFlags
	policy       policyFlags
	state        serverState
	oidc         oidcFlags
	listen       string
	untilClosed  bool
	cert, key    string
	behindProxy  bool
	origins      []string
	hosts        []string
	portsDomain  string
	e2b          bool
	images       []string
	timeout      string
	ttl, maxTTL  string
	maxSandboxes int
	maxVolumes   int
	maxImages    int
	maxMemory    string
	maxDisk      string
	maxDayCPU    string
	maxDaySent   string
	maxRuns      int
	maxRate      int
	keepAudit    string
	warm         int
	languages    []string
	zygote       bool
	replicaURL   string
	log          string
}

func (f *serveFlags) register(set *pflag.FlagSet) {
	f.registerBounds(set)
	registerLanguageFile(set, &f.declared)
	f.place.Claims.register(set)
	f.policy.register(set)
	f.state.register(set)
	f.oidc.register(set)
	set.StringVar(&f.listen, "listen", "127.0.0.1:8321", "listen on `ADDRESS` or unix:PATH")
	set.BoolVar(&f.untilClosed, untilClosedName, false, "end, and remove all sandboxes, when standard input closes; keep no data")
	setOnlyHere(set, untilClosedName)
	set.StringVar(&f.cert, "tls-cert", "", "speak HTTPS with the certificate in `FILE` (PEM)")
	set.StringVar(&f.key, "tls-key", "", "`FILE` of the key of --tls-cert (PEM)")
	set.BoolVar(&f.behindProxy, "behind-proxy", false, "speak HTTP where others reach it, since a proxy speaks HTTPS with clients")
	set.StringArrayVar(&f.origins, "allow-origin", nil, "allow web pages of this `ORIGIN`, such as https://app.example.org (repeatable)")
	set.StringArrayVar(&f.hosts, "allow-host", nil, "`NAME` of the server in addition to its address and localhost (repeatable)")
	set.StringVar(&f.portsDomain, "ports-domain", "", "serve ports of sandboxes as PORT-ID.`DOMAIN`, below which there must be nothing else")
	set.BoolVar(&f.e2b, "e2b", false, "let programs use the server with the SDKs of E2B")
	set.StringArrayVar(&f.images, "allow-image", nil, "let requests use `IMAGE`; * at its end stands for any ending (repeatable)")
	set.StringVar(&f.environment, "environment", "", "use environment `NAME`, such as data-science, where a request names none")
	set.StringVar(&f.timeout, "timeout", "", "longest time limit of a run: `DURATION` such as 2m (default 5m)")
	set.StringVar(&f.ttl, "ttl", "1h", "lifetime of a sandbox whose request does not say: `DURATION`")
	set.StringVar(&f.maxTTL, "max-ttl", "24h", "longest lifetime of a sandbox: `DURATION`")
	set.IntVar(&f.maxSandboxes, "max-sandboxes", 64, "`NUMBER` of sandboxes that a project can have at the same time")
	set.IntVar(&f.maxVolumes, "max-volumes", 0, "`NUMBER` of volumes that a project can have, whose size the server does not limit (default: none)")
	set.IntVar(&f.maxImages, "max-images", 0, "`NUMBER` of images of its sandboxes that a project can have (default: none)")
	set.StringVar(&f.maxMemory, "project-memory", "", "memory limit of all sandboxes of a project together: `SIZE` such as 16g (default: none)")
	set.StringVar(&f.maxDisk, "project-disk", "", "disk limit of all sandboxes of a project together: `SIZE` such as 64g (default: none)")
	set.StringVar(&f.maxDayCPU, "project-cpu-per-day", "", "CPU time that a project can use in a day of UTC: `DURATION` such as 10h (default: no limit)")
	set.StringVar(&f.maxDaySent, "project-egress-per-day", "", "bytes that a project can send over networks in a day of UTC: `SIZE` such as 10g (default: no limit)")
	set.IntVar(&f.maxRuns, "max-runs", 16, "`NUMBER` of programs that can run at once")
	set.IntVar(&f.maxRate, "max-requests-per-second", 0, "`NUMBER` of requests that a key can send in a second (default: no limit)")
	set.IntVar(&f.warm, "warm", 2, "keep `NUMBER` of sandboxes ready for each warm language")
	set.StringArrayVar(&f.languages, "warm-language", nil, "keep sandboxes for this `LANGUAGE` ready (repeatable; default: python)")
	registerZygote(set, &f.zygote)
	set.StringVar(&f.replicaURL, "replica-url", "", "`URL` by which other servers of the same database reach this one, to share its sandboxes")
	set.StringVar(&f.keepAudit, "keep-audit", "365d", "remove entries of the audit log that are older than `DURATION`")
	set.StringVar(&f.log, "log", "info", "log `LEVEL`: debug, info, warn or error")
}

// serve serves until ctx ends.
func (f *serveFlags) serve(ctx context.Context) error {
	level, err := logLevel(f.log)
	if err != nil {
		return err
	}
	log := logAt(level)
	cfg, err := f.config(log)
	if err != nil {
		return err
	}
	keep, err := durationFlag("keep-audit", f.keepAudit)
	if err != nil {
		return err
	}
	var db *store.Store
	if !f.untilClosed {
		if db, err = f.state.open(ctx); err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // nothing is written at the end
		db.KeepAudit(keep)
	}
	if f.maxImages > 0 {
		dir, err := f.state.dir()
		if err != nil {
			return err
		}
		cfg.ImageDir = filepath.Join(dir, serverImages)
	}
	l, err := f.listener(ctx)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	own := ""
	if db != nil {
		own, err = f.keys(ctx, db, &cfg, l)
	} else {
		own, err = f.ownKey(&cfg, l)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	tracers, endTracing, err := tracing(ctx, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer endTracing()
	if tracers != nil {
		cfg.Tracers = tracers
	}
	server, err := httpapi.New(&cfg)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err = server.Check(ctx); err == nil {
		err = f.printReady(l, own, server)
	}
	if err != nil {
		err = errors.Join(err, l.Close())
	} else {
		if err := notifyReady(); err != nil {
			log.Warn("systemd was not told that the server is ready", "error", err)
		}
		err = server.Serve(ctx, l)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpStop)
	defer cancel()
	return errors.Join(err, server.Close(stop))
}

// printE2B prints what the SDKs read from the environment. A key that the operator has made is not known here.
func (f *serveFlags) printE2B(url, own string) {
	key := "the output of: llmsandbox serve key create --e2b NAME"
	if own != "" {
		key = e2b.Key(own)
	}
	fmt.Fprintf(os.Stderr, "llmsandbox: for the SDKs of E2B, set\nE2B_API_URL=%s\nE2B_SANDBOX_URL=%s\nE2B_API_KEY=%s\n", url, url, key)
}

// notifyReady tells systemd that the server serves, where a service of the type notify has started it: a datagram to the socket that
// NOTIFY_SOCKET names, as sd_notify(3) has it. @ at its beginning is an abstract name, which Go writes so, too.
func notifyReady() error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	c, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	_, err = c.Write([]byte("READY=1"))
	return errors.Join(err, c.Close())
}

// config turns flags into the server's configuration, but for its keys.
func (f *serveFlags) config(log *slog.Logger) (httpapi.Config, error) {
	cfg := httpapi.Config{
		Version: version, Console: true, MCP: true, E2B: f.e2b, Images: f.images, BehindProxy: f.behindProxy, Hosts: f.hosts, Origins: f.origins, PortsDomain: f.portsDomain,
		MaxSandboxes: f.maxSandboxes, MaxVolumes: f.maxVolumes, MaxImages: f.maxImages, MaxRuns: f.maxRuns, MaxRequestRate: f.maxRate, Warm: f.warm, WarmLanguages: f.languages, Zygote: f.zygote, Log: log,
	}
	if f.place.Backend == localName {
		cfg.Memory = availableMemory
	}
	if f.warm == 0 {
		cfg.Warm = -1 // zero is the default there
	}
	err := cmp.Or(
		atLeast(number{"warm", f.warm, 0}, number{"max-sandboxes", f.maxSandboxes, 1}, number{"max-volumes", f.maxVolumes, 0}, number{"max-images", f.maxImages, 0}, number{"max-runs", f.maxRuns, 1}, number{"max-requests-per-second", f.maxRate, 0}),
		f.checkServer(f.zygote),
	)
	switch {
	case err != nil:
		return cfg, err
	case (f.cert == "") != (f.key == ""):
		return cfg, errors.New("--tls-cert and --tls-key belong together: give both, or neither")
	case f.cert != "" && f.behindProxy:
		return cfg, errors.New("--behind-proxy and --tls-cert exclude each other: leave one of them out")
	}
	if err := f.checkListen(); err != nil {
		return cfg, err
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return cfg, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	self, err := os.Executable()
	if err != nil {
		return cfg, fmt.Errorf("start the supervisors of sandboxes: %w", err)
	}
	err = cmp.Or(
		into(&cfg.Sandbox)(f.options(true)),
		into(&cfg.Sandbox.Limits.Timeout)(timeoutFlag("timeout", f.timeout)),
		into(&cfg.Sandbox.Policy)(f.policy.options()),
		into(&cfg.DefaultLifetime)(durationFlag("ttl", f.ttl)),
		into(&cfg.MaxLifetime)(durationFlag("max-ttl", f.maxTTL)),
		into(&cfg.MaxMemory)(sizeFlag("project-memory", f.maxMemory, limit.MinMemory)),
		into(&cfg.MaxDisk)(sizeFlag("project-disk", f.maxDisk, limit.MinDisk)),
		into(&cfg.MaxDayCPU)(durationFlag("project-cpu-per-day", f.maxDayCPU)),
		into(&cfg.MaxDaySent)(sizeFlag("project-egress-per-day", f.maxDaySent, 1)),
	)
	if err != nil {
		return cfg, err
	}
	cfg.MaxMemory, cfg.MaxDisk, cfg.MaxDaySent = max(cfg.MaxMemory, 0), max(cfg.MaxDisk, 0), max(cfg.MaxDaySent, 0) // unlimited is the default there
	if cfg.Sandbox.Limits.Timeout == llmsandbox.Unlimited {
		return cfg, errors.New("--timeout unlimited: runs of a server need an end; use a duration such as 1h")
	}
	if f.untilClosed { // sandboxes are to end with the server
		return cfg, nil
	}
	at, err := json.Marshal(f.place)
	cfg.Supervisor = &llmsandbox.Supervisor{Command: []string{self, superviseCommand}, Config: at}
	return cfg, err
}

// localProject is the project of the key that a server makes for itself.
const localProject = "local"

// keys sets whose requests the server takes. A server on the loopback that has no keys, and where nobody logs in with an issuer, makes a key of its own, which
// it returns.
func (f *serveFlags) keys(ctx context.Context, db *store.Store, cfg *httpapi.Config, l net.Listener) (own string, err error) {
	cfg.Authenticate = func(ctx context.Context, secret string) (httpapi.Caller, error) {
		key, err := db.Authenticate(ctx, secret)
		return key.Caller(), err
	}
	if cfg.OIDC, err = f.oidc.config(ctx, db); err != nil {
		return "", err
	}
	if cfg.Secret, err = db.SealingSecret(ctx); err != nil {
		return "", err
	}
	cfg.Keys, cfg.Records, cfg.Sessions, cfg.Usage = db, db, db, db
	if f.replicaURL != "" {
		cfg.Replicas, cfg.ReplicaURL = db, f.replicaURL
	}
	cfg.Ready = db.Ping
	cfg.Audit = func(ctx context.Context, events []httpapi.AuditEvent) error { return db.Audit(ctx, events...) }
	cfg.AuditLog = db.Entries
	known, err := db.Keys(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now()
	valid := slices.ContainsFunc(known, func(k database.Key) bool { return k.Usable(now) })
	if valid || cfg.OIDC != nil {
		return "", nil
	}
	return f.ownKey(cfg, l)
}

// ownKey makes the key of a server that has no others, and returns it. A server that belongs to a program needs none on a Unix socket: who can connect to
// that could also do what the program does. With a database, a socket has one, since a proxy may let others connect.
func (f *serveFlags) ownKey(cfg *httpapi.Config, l net.Listener) (own string, err error) {
	switch loopback := httpgate.Address(l.Addr()).IsLoopback(); {
	case !loopback && f.untilClosed:
		return "", fmt.Errorf("--listen %s: others reach that address, and a server with --until-stdin-closes is for one program: use 127.0.0.1:0 or a Unix socket", f.listen)
	case !loopback:
		return "", fmt.Errorf("--listen %s: others reach that address, and there are no keys: make one with llmsandbox serve key create NAME", f.listen)
	case f.untilClosed && l.Addr().Network() == "unix":
		return "", nil
	}
	own = httpgate.NewToken()
	asked := cfg.Authenticate
	cfg.Authenticate = func(ctx context.Context, secret string) (httpapi.Caller, error) {
		switch {
		case subtle.ConstantTimeCompare([]byte(secret), []byte(own)) == 1:
			return httpapi.Caller{Project: localProject, KeyName: "of this run", Scopes: []string{database.ScopeRead, database.ScopeWrite, database.ScopeAudit}}, nil
		case asked == nil:
			return httpapi.Caller{}, httpapi.ErrUnknownKey
		}
		return asked(ctx, secret)
	}
	return own, nil
}
