// Package docker runs sandboxes as containers of a Docker engine, local or remote.
package docker

import (
	"cmp"
	"context"
	"runtime"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/engine/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// Name is the backend's name.
const Name = "docker"

// Options say which engine is used and how its sandboxes are made. The zero value uses
// the engine that the docker command would use, with safe defaults.
type Options struct {
	engine.Options
	// Connection says how to reach the engine.
	Connection ClientOptions
	// Client is used in place of Connection, and stays the caller's to close.
	Client *client.Client
}

// New returns a backend; nil options are the defaults. It reads Docker's configuration, and asks nothing of the engine
// yet. It fails for a configuration that makes no sense and for options that exclude
// each other.
func New(opts *Options) (*engine.Backend, error) {
	o := *cmp.Or(opts, &Options{})
	c := o.Client
	if c == nil {
		var err error
		if c, err = NewClient(&o.Connection); err != nil {
			return nil, err
		}
	}
	return engine.New(c, engine.Flavor{Name: Name, Host: host, Auth: o.Connection.registryAuth, TmpfsOwner: true}, &o.Options)
}

// host asks the daemon what it holds containers to.
func host(ctx context.Context, c *client.Client) (engine.Host, error) {
	res, err := c.Info(ctx, client.InfoOptions{})
	if err != nil {
		return engine.Host{}, err
	}
	h := engine.Host{Limits: limits(res.Info), Runtime: res.Info.DefaultRuntime}
	for _, o := range res.Info.SecurityOptions { // such as "name=seccomp,profile=default"
		h.Seccomp = h.Seccomp || strings.HasPrefix(o, "name=seccomp")
		h.UserNamespace = h.UserNamespace || strings.HasPrefix(o, "name=rootless") || strings.HasPrefix(o, "name=userns")
	}
	return h, nil
}

// limits returns which limits the daemon's cgroup driver holds.
func limits(info system.Info) []backend.Control {
	by := "cgroup"
	if info.CgroupVersion != "" {
		by = "cgroup v" + info.CgroupVersion
	}
	control := func(name string, holds bool) backend.Control {
		if holds {
			return backend.Control{Name: name, Enforced: true, By: by}
		}
		return backend.Control{Name: name, Why: "the engine says that it cannot limit this (cgroup driver " + info.CgroupDriver + ")",
			Fix: "run the daemon with the cgroup controller for it; rootless, with cgroup v2 and delegation"}
	}
	memory := control("memory", info.MemoryLimit)
	if memory.Enforced && !info.SwapLimit {
		memory.Why = "swap is not counted: the kernel was started without swapaccount=1"
	}
	return []backend.Control{memory, control("cpus", info.CPUCfsQuota), control("pids", info.PidsLimit)}
}

// hints are what errors advise a Docker user to do.
var hints = hintsFor(runtime.GOOS)

func hintsFor(goos string) dial.Hints {
	h := dial.Hints{
		Engine: "Docker",
		Start:  "start Docker Desktop, or name another engine with DOCKER_HOST or a docker context",
		Access: "run as a user who may use Docker",
		TLS:    "put ca.pem, cert.pem and key.pem that fit into DOCKER_CERT_PATH (or ~/.docker) and set DOCKER_TLS_VERIFY=1, or use a docker context that has them",
	}
	if goos == "linux" {
		h.Start = "start it (sudo systemctl start docker; rootless: systemctl --user start docker), or name another engine with DOCKER_HOST or a docker context"
		h.Access = "join the group docker (sudo usermod -aG docker USER, then log in again; its members are root in effect), or use rootless Docker or Podman"
	}
	return h
}

// Diagnose looks, in this order, at the configuration, the connection to the engine
// that o names, and what the engine can. A check that later ones need ends the list
// when it fails.
func Diagnose(ctx context.Context, opts *ClientOptions) []backend.Finding {
	f, err := cmp.Or(opts, &ClientOptions{}).find()
	e := diagnose.Engine{Endpoint: f.endpoint, Source: f.source}
	if err == nil {
		e.Client, err = f.client()
	}
	return diagnose.Run(ctx, e, err)
}
