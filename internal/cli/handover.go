package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// kubernetesProgram is this command with the Kubernetes backend.
	kubernetesProgram = "llmsandbox-kubernetes"
	// handedVariable tells that program which build has started it.
	handedVariable = "LLMSANDBOX_HANDED_OVER_BY"
)

// handOver replaces this program by the one with the Kubernetes backend when the flags ask
// for it. It is called before anything is opened, read or made: the other begins anew, with
// the same arguments. It returns nil when this program is the right one.
func handOver(flags *pflag.FlagSet) error {
	if f := flags.Lookup("backend"); linked != nil || f == nil || f.Value.String() != kubernetesName {
		return nil
	}
	program, err := findProgram(kubernetesProgram)
	if err != nil {
		return fmt.Errorf("the Kubernetes backend is in a program of its own: %w; %s", err, howToGet(thisBuild()))
	}
	return become(program, append(os.Environ(), handedVariable+"="+thisBuild()))
}

// takenOver checks that this is the program that another build of the command wanted to
// hand over to, if one did.
func takenOver() error {
	by, handed := os.LookupEnv(handedVariable)
	if !handed {
		return nil
	}
	// It is not for the programs that this one starts.
	if err := os.Unsetenv(handedVariable); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	switch {
	case linked == nil:
		return fmt.Errorf("%s was started as %s, and has no Kubernetes backend; %s", self, kubernetesProgram, howToGet(by))
	case by != thisBuild():
		return fmt.Errorf("%s is version %s, and llmsandbox, which started it, is %s: they must be of one build; %s", self, thisBuild(), by, howToGet(by))
	}
	return nil
}

// howToGet says how the program with the Kubernetes backend is had for a build of this one.
func howToGet(build string) string {
	const checkout = "`make build` in a checkout makes both"
	_, module, _ := strings.Cut(build, " ")
	if strings.HasPrefix(module, "v") && !strings.Contains(module, "+") { // else it is a build of this machine
		return "get it with `go install github.com/llmsandbox/llmsandbox/cmd/" + kubernetesProgram + "@" + module + "`; " + checkout
	}
	return checkout
}

// findProgram looks for another program of this project: beside this one, and then in PATH,
// whose relative directories do not count: what lies in a working directory is not ours.
func findProgram(name string) (string, error) {
	var beside []string
	if self, err := os.Executable(); err == nil {
		beside = directoriesOf(self)
	}
	return findIn(name, beside, filepath.SplitList(os.Getenv("PATH")))
}

// directoriesOf are the directories that a program is in, by its name and with links resolved.
func directoriesOf(program string) []string {
	dirs := []string{filepath.Dir(program)}
	if real, err := filepath.EvalSymlinks(program); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

func findIn(name string, beside, path []string) (string, error) {
	for _, dir := range slices.Concat(beside, path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	where := "in PATH"
	if len(beside) > 0 {
		where = "beside this program (" + strings.Join(beside, ", ") + ") or " + where
	}
	return "", fmt.Errorf("%s is not %s", name, where)
}

// version is the release; the build tells the commit where there is none.
const version = "0.1.0-dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  llmsandbox version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Println(versionLine())
			return err
		},
	}
}

// versionLine says what this program is: its release, the commit it was built from if that is
// known, and what it was built for.
func versionLine() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
		if i >= 0 {
			commit = " (" + info.Settings[i].Value + ")"
		} else if strings.HasPrefix(info.Main.Version, "v") {
			commit = " (" + info.Main.Version + ")" // of a module, it has the commit in it
		}
	}
	return fmt.Sprintf("llmsandbox %s%s, agent protocol %d, %s %s/%s", version, commit, agentproto.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
