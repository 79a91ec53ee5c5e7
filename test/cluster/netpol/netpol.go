// Package netpol enforces NetworkPolicy on a node of one bridge, with iptables.
package netpol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Command enforces NetworkPolicy for the pods of this one node with iptables: one
// chain for each isolated pod and direction, all of them rewritten at every change.
// IPv4, TCP and UDP: enough to show what a policy does, not a network plugin.
func Command() *cobra.Command {
	return &cobra.Command{
		Use: "netpol KUBECONFIG", Args: cobra.ExactArgs(1), SilenceUsage: true,
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return enforce(ctx, args[0])
		},
	}
}

// enforce keeps iptables as the cluster's policies say, until the context ends.
func enforce(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, policies, namespaces := factory.Core().V1().Pods(), factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Namespaces()
	changed := make(chan struct{}, 1)
	mark := func() {
		select {
		case changed <- struct{}{}:
		default: // the round to come sees this change too
		}
	}
	for _, i := range []cache.SharedIndexInformer{pods.Informer(), policies.Informer(), namespaces.Informer()} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { mark() }, UpdateFunc: func(any, any) { mark() }, DeleteFunc: func(any) { mark() },
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%v cannot be watched", kind)
		}
	}
	old := ""
	for {
		p, errP := pods.Lister().List(labels.Everything())
		n, errN := namespaces.Lister().List(labels.Everything())
		q, errQ := policies.Lister().List(labels.Everything())
		if err := errors.Join(errP, errN, errQ); err != nil {
			return err
		}
		now := table(p, n, q)
		if now != old {
			if err := restore(ctx, retire(old, now)); err != nil {
				return err
			}
			log.Printf("%d pods, %d policies, %d rules", len(p), len(q), strings.Count(now, "\n-A"))
			old = now
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// restore applies a table whole or not at all.
func restore(ctx context.Context, text string) error {
	c := exec.CommandContext(ctx, "iptables-restore", "--noflush", "-w")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("iptables-restore: %w: %s\n%s", err, bytes.TrimSpace(out), text)
	}
	return nil
}

// retire adds to a table the removal of the chains that only the one before it has.
func retire(old, now string) string {
	flush, drop := "", ""
	for line := range strings.Lines(old) {
		if strings.HasPrefix(line, ":") && !strings.Contains(now, line) {
			flush += line
			drop += "-X " + strings.Fields(line[1:])[0] + "\n"
		}
	}
	now = strings.Replace(now, "*filter\n", "*filter\n"+flush, 1)
	return strings.Replace(now, "COMMIT\n", drop+"COMMIT\n", 1)
}
