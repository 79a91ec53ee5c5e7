// Command llmsandbox runs code in sandboxes: see `llmsandbox --help`. Where the Kubernetes
// backend is asked for, llmsandbox-kubernetes takes its place.
package main

import (
	"os"

	"github.com/llmsandbox/llmsandbox/internal/cli"
)

func main() { os.Exit(cli.Main(nil)) }
