// Command llmsandbox-kubernetes is llmsandbox with the Kubernetes backend in it. llmsandbox
// finds and starts it by itself; by hand it is the same command, only slower to start.
package main

import (
	"os"

	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/cli/cluster"
)

func main() { os.Exit(cli.Main(cluster.Backend{})) }
