// Command bench measures sandboxes against the bare interpreter and against other
// ways to isolate it, all in one run, and prints the ratios. Its figures are for
// comparing, not for passing: no test depends on them.
//
// Each round runs every contender once, one after another, so that a machine that
// gets faster or slower meanwhile does so for all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "n", 40, "rounds of the short measurements")
	flag.StringVar(&o.only, "only", "", "measure only the sections whose name contains this")
	flag.StringVar(&o.command, "command", "", "the llmsandbox command to measure (default: built from ./cmd/llmsandbox)")
	flag.StringVar(&o.image, "image", "llmsandbox/python:1", "an image with python3 that the container engines have")
	flag.StringVar(&o.docker, "docker", "", "the Docker engine, as in DOCKER_HOST (default: the one that the docker command uses)")
	flag.StringVar(&o.podman, "podman", "", "the Podman service, as in CONTAINER_HOST (default: none)")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "the Kubernetes cluster to measure (default: that of KUBECONFIG; else none)")
	flag.StringVar(&o.kubectl, "kubectl", "kubectl", "the kubectl command, with arguments if need be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds                               int
	only, command, image, docker, podman string
	kubeconfig, kubectl                  string
}

type section struct {
	name string
	run  func(context.Context, *env, int) error
}

func bench(ctx context.Context, o options) error {
	// The commands that take part go by these, too.
	for name, host := range map[string]string{"DOCKER_HOST": o.docker, "CONTAINER_HOST": o.podman} {
		if host == "" {
			continue
		}
		if err := os.Setenv(name, host); err != nil {
			return err
		}
	}
	e, err := newEnv(ctx, o)
	if err != nil {
		return err
	}
	defer e.close()
	fmt.Printf("%s, %d CPUs, %s, uid %d, python %s\n", kernel(), runtime.NumCPU(), runtime.Version(), os.Getuid(), e.python)
	all := []section{
		{"one-shot", oneShots},
		{"isolation process", inPlace},
		{"run in an open sandbox", openRuns},
		{"writable root", writableRoots},
		{"artifacts", captured},
		{"kernels", kernels},
		{"many at once", manyAtOnce},
		{"memory of an idle sandbox", idleMemory},
		{"output", outputs},
		{"files", files},
		{"network", network},
		{"pool", pools},
		{"forked runs and kernels", forks},
		{"zygotes", zygotes},
		{"crowd", crowd},
		{"go", goPrograms},
		{"libraries", libraries},
		{"library installs", libraryInstalls},
		{"first plot", firstPlot},
		{"compiled languages", compiled},
		{"mcp", mcpServer},
		{"HTTP server", httpServer},
		{"connections", httpConnections},
		{"python package", pythonClient},
		{"e2b", e2bSDK},
	}
	for _, engine := range []*containerEngine{e.docker, e.podman} {
		if engine != nil {
			all = append(all, engine.sections()...)
		}
	}
	if e.docker != nil {
		all = append(all, section{"docker: llm-sandbox of Python", e.docker.reference})
	}
	if e.cluster != nil {
		all = append(all, e.cluster.sections()...)
	}
	for _, s := range all {
		if !strings.Contains(s.name, o.only) {
			continue
		}
		fmt.Printf("\n## %s\n", s.name)
		if err := s.run(ctx, e, o.rounds); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return "Linux " + strings.TrimSpace(string(release))
}
