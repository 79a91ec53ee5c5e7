package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// appArmor is where AppArmor has its files.
type appArmor struct {
	setting string // exists where AppArmor can take user namespaces from programs without a profile
	profile string
}

var machineAppArmor = appArmor{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/etc/apparmor.d/llmsandbox"}

func newAppArmorCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "apparmor [flags]",
		Short: "Let this program make user namespaces where AppArmor forbids it",
		Long: `Let llmsandbox make user namespaces, which the local backend needs, where AppArmor takes them
from ordinary users' programs, as on Ubuntu 24.04 and later. As root, this writes a profile
for this very program to ` + machineAppArmor.profile + `, and loads it. Run it again when the program
has been moved.

The profile restricts nothing. Users who can run llmsandbox can then make user namespaces with
any program, as they can have it start theirs. A Go program that opens sandboxes itself needs
such a profile of its own.`,
		Example: `  llmsandbox setup apparmor --print
  sudo "$(command -v llmsandbox)" setup apparmor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			text, err := appArmorProfile(program)
			if err != nil {
				return err
			}
			if path, who := replaceable(program); path != "" {
				stderr.note(fmt.Sprintf("%s %s can write to %s, and so put any program in the place of this one: install llmsandbox where only root can write, such as in /usr/local/bin",
					paint(stderr, yellow, "warning:"), who, path))
			}
			if show {
				fmt.Print(text)
				return nil
			}
			if err := machineAppArmor.load(cmd.Context(), text); err != nil {
				return err
			}
			fmt.Printf("%s\nLoaded this profile, and wrote it to %s.\n", text, machineAppArmor.profile)
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the profile, and change nothing")
	return cmd
}

const appArmorMark = "# Written by llmsandbox setup apparmor.\n"

// In a profile's quotes, these characters stand for themselves; others make patterns or end the quotes.
var appArmorPath = regexp.MustCompile(`^/[\pL\pN/._+~:=,@% -]+$`)

// appArmorProfile is the profile of a program. What it executes, as the agent, has no profile and so inherits this one.
func appArmorProfile(program string) (string, error) {
	if !appArmorPath.MatchString(program) {
		return "", fmt.Errorf("%q has characters that mean something else in an AppArmor profile: move the program, such as to /usr/local/bin", program)
	}
	return appArmorMark + `abi <abi/4.0>,
include <tunables/global>

profile llmsandbox "` + program + `" flags=(unconfined) {
  userns,

  include if exists <local/llmsandbox>
}
`, nil
}

// load loads a profile into the kernel, and writes it where it is loaded from when the machine starts.
func (a appArmor) load(ctx context.Context, text string) error {
	if _, err := os.Stat(a.setting); err != nil {
		return errors.New("AppArmor of this kernel takes user namespaces from no program, so none needs a profile: llmsandbox doctor shows what else is missing")
	}
	old, err := os.ReadFile(a.profile)
	if err == nil && !strings.HasPrefix(string(old), appArmorMark) {
		return fmt.Errorf("%s is there, and was not written by this command: move it away, or add %q to its profile", a.profile, "userns,")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("only root can load a profile: run this with sudo, or see the profile with --print")
	}
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		return fmt.Errorf("%w: install AppArmor's programs (apt-get install apparmor)", err)
	}
	load := exec.CommandContext(ctx, parser, "--replace")
	load.Stdin = strings.NewReader(text)
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load the profile: apparmor_parser: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.WriteFile(a.profile, []byte(text), 0o644)
}

// replaceable returns the first part of a program's path that others than root can write to, and who.
func replaceable(program string) (path, who string) {
	for path = program; ; path = filepath.Dir(path) {
		if who = writer(path); who != "" {
			return path, who
		}
		if path == filepath.Dir(path) {
			return "", ""
		}
	}
}
