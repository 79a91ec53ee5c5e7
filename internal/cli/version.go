package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// version is the release; the build tells the commit where there is none.
const version = "0.1.0-dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  llmsandbox version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			commit := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = " (" + s.Value + ")"
					}
				}
			}
			_, err := fmt.Printf("llmsandbox %s%s, agent protocol %d, %s %s/%s\n", version, commit, agentproto.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// thisBuild identifies what this program was built from: the release, and the module's
// version, which has the commit in it and whether files were changed since, as far as the
// build knows it.
func thisBuild() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return version + " " + info.Main.Version
	}
	return version
}
