// Package cli is the command llmsandbox.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command with the process's arguments, and returns its exit code. c is the
// Kubernetes backend; without one, another program is handed over to where it is asked for.
// Main is called once in a process.
func Main(c Cluster) int {
	if isInit() {
		code, err := runInit()
		if err != nil {
			printError(stderr, err)
			return exitOurFailure
		}
		return code
	}
	linked = c
	collectLater()
	if err := takenOver(); err != nil {
		printError(stderr, err)
		return exitOurFailure
	}
	ctx := notifySignals(graceTime)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // so that the write fails, and this process lives to remove its sandbox
	err := newRootCommand(os.Args[1:]...).ExecuteContext(ctx)
	stderr.close()
	var code exitCode
	switch {
	case err == nil:
		return 0
	case readerGone(err):
		return exitBrokenPipe
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "llmsandbox: "+context.Cause(ctx).Error()+"; everything that was started has been ended")
		return errorCode(ctx, err)
	default:
		printError(stderr, err)
		return errorCode(ctx, err)
	}
}

// collectLater puts the first garbage collection off until the heap is four times as large as
// it would be otherwise: most commands have ended by then. Later ones come as always.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	before := debug.SetGCPercent(400)
	first := new(*byte) // goes with the first collection
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, before)
}

// newRootCommand returns the command for these arguments. A command that they name has no others beside it,
// since making all takes some of the time of a short run.
func newRootCommand(args ...string) *cobra.Command {
	cobra.EnableCommandSorting = false // help has them in the order of use
	root := &cobra.Command{
		Use:   "llmsandbox",
		Short: "Run code written by language models without trusting it",
		Long: `Run code written by language models without trusting it, in a sandbox with its own files and
processes, no network, no privileges, and limits that the kernel enforces.`,
		Example: `  llmsandbox run examples/primes.py
  llmsandbox run -l js -c 'console.log(6 * 7)'
  echo 'puts "hi"' | llmsandbox run -l ruby -
  id=$(llmsandbox create); llmsandbox exec "$id" -- python3 -V; llmsandbox rm "$id"`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := configure(cmd); err != nil {
				return err
			}
			if err := handOver(cmd.Flags()); err != nil {
				return err
			}
			return loadLanguages(cmd.Flags())
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	if len(args) > 0 && commands[args[0]] != nil {
		root.AddCommand(commands[args[0]]())
	} else {
		addCommands(root)
	}
	explainArgs(root)
	setHelp(root)
	return root
}

// commands make the commands of these names.
var commands = map[string]func() *cobra.Command{
	"run": newRunCommand, "repl": newReplCommand, "check": newCheckCommand, "mcp": newMCPCommand, "serve": newServeCommand,
	"create": newCreateCommand, "ls": newListCommand, "stats": newStatsCommand, "exec": newExecCommand, "logs": newLogsCommand, "cp": newCopyCommand,
	"install": newInstallCommand, "network": newNetworkCommand, "port-forward": newPortForwardCommand, "deadline": newDeadlineCommand,
	"commit": newCommitCommand, "rm": newRemoveCommand, "gc": newGCCommand,
	"setup": newSetupCommand, "environments": newEnvironmentsCommand, "template": newTemplateCommand, "image": newImageCommand,
	"volume": newVolumeCommand, "images": newImagesCommand, "cache": newCacheCommand,
	"doctor": newDoctorCommand, "languages": newLanguagesCommand, "version": newVersionCommand,
	superviseCommand: newSuperviseCommand, waitCommand: newWaitCommand,
}

func addCommands(root *cobra.Command) {
	group(root, codeGroup, "Run code", "run", "repl", "check", "mcp", "serve")
	group(root, sandboxGroup, "Sandboxes", "create", "ls", "stats", "exec", "logs", "cp", "install", "network", "port-forward", "deadline", "commit", "rm", "volume", "gc")
	group(root, stockGroup, "Environments, templates, images and caches", "setup", "environments", "template", "image", "images", "cache")
	group(root, machineGroup, "Machine and help", "doctor", "languages", "version")
	topic := newRuntimeOptionsTopic()
	topic.GroupID = machineGroup
	root.AddCommand(topic)
	root.AddCommand(newSuperviseCommand(), newWaitCommand())
	root.SetHelpCommandGroupID(machineGroup)
	root.SetCompletionCommandGroupID(machineGroup)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	if len(os.Args) > 1 && len(os.Args[1]) < 4 {
		root.SuggestionsMinimumDistance = 1 // of a short name, two letters are most
	}
	checkHelpTopics(root)
	setCompletion(root)
}

// parent is a command that does nothing itself but show which there are below it.
func parent(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// explainArgs has commands that get too few or too many arguments say which they take.
func explainArgs(root *cobra.Command) {
	for _, c := range root.Commands() {
		explainArgs(c)
		check := c.Args
		if check == nil {
			continue
		}
		c.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			return fmt.Errorf("%s: got %s; usage: %s", cmd.Name(), plural(len(args), "argument"), cmd.UseLine())
		}
	}
}

// checkHelpTopics has `help` fail for what is no command.
func checkHelpTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	help.Short, help.Long = "Show the help of a command", "Show the help of a command, as COMMAND --help does."
	show := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if _, _, err := root.Find(args); err != nil {
			return err
		}
		show(cmd, args)
		return nil
	}
}
