package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
)

// libraryFlags say which libraries are installed, and how.
type libraryFlags struct {
	libraries []string
	offline   bool
	from      string
	timeout   string
}

// register adds the flag that names libraries to a command that opens a sandbox; how they
// are installed is registerHow's.
func (f *libraryFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.libraries, "lib", nil, "library of the language, with a version if need be, such as 'requests>=2,<3' (repeatable)")
}

func (f *libraryFlags) registerHow(set *pflag.FlagSet, timeout string) {
	set.BoolVar(&f.offline, "offline", false, "install only what is cached or in --lib-from; no network")
	set.StringVar(&f.from, "lib-from", "", "folder with wheels, tarballs or gems to install libraries from, instead of registries")
	set.StringVar(&f.timeout, timeout, "", "how long installing libraries may take, such as 5m (default 10m)")
}

func (f *libraryFlags) options() (llmsandbox.InstallOptions, error) {
	o := llmsandbox.InstallOptions{Offline: f.offline}
	d, err := timeoutFlag(f.timeout)
	if err != nil || d < 0 {
		return o, fmt.Errorf("timeout %q of the installation: use a duration above 0 such as 5m", f.timeout)
	}
	o.Timeout = d
	if f.from != "" {
		if o.Local, err = filepath.Abs(f.from); err != nil {
			return o, fmt.Errorf("--lib-from: %w", err)
		}
	}
	return o, nil
}
