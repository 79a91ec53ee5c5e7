// Command llmsandbox runs code in sandboxes: see `llmsandbox --help`.
package main

import (
	"os"

	"github.com/llmsandbox/llmsandbox/internal/cli"
)

func main() { os.Exit(cli.Main()) }
