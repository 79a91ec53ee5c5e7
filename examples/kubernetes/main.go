// Command kubernetes runs code in a pod of the cluster that kubectl would use: in the
// image of its argument, or Python's default one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

func main() {
	image := ""
	if len(os.Args) > 1 {
		image = os.Args[1]
	}
	if err := run(context.Background(), image); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, image string) (err error) {
	// One backend for the whole program: its sandboxes share a watch and a heartbeat.
	cluster, err := kubernetes.New(nil)
	if err != nil {
		return err
	}
	defer cluster.Close()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: cluster, Language: "python", Image: image})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := sb.Close(); err == nil {
			err = closeErr
		}
	}()
	res, err := sb.Run(ctx, "print('hello from a pod')", nil)
	if err != nil {
		return err
	}
	fmt.Print(res.Stdout)
	for _, c := range sb.Capabilities().Controls {
		if !c.Enforced {
			fmt.Fprintf(os.Stderr, "not enforced: %s: %s\n", c.Name, c.Why)
		}
	}
	return nil
}
