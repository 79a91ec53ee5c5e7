package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

func newTemplateCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "template",
		Aliases: []string{"templates"},
		Short:   "Create, list, warm and remove templates of sandboxes",
		Long: `Create, list, warm and remove templates: names for what many sandboxes have in common, such as
language, environment, imports and limits. Use them with --template.`,
		Example: `  llmsandbox template create data --environment data-science --import numpy,pandas --memory 1g
  llmsandbox template warm data
  llmsandbox run --template data report.py`,
	}, newTemplateCreateCommand(), newTemplateListCommand(), newTemplateWarmCommand(), newTemplateRemoveCommand())
}

func newTemplateCreateCommand() *cobra.Command {
	var f sandboxFlags
	var timeout, output string
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Create a template, or replace it",
		Long: `Create a template, in place of one of the same name. Languages, limits and names are checked;
llmsandbox template warm also checks that images, packages and modules are there. Do not put
secrets into a template: use --secret with the command that runs code.`,
		Example: `  llmsandbox template create data --environment data-science --import numpy,pandas --memory 1g
  llmsandbox template create web -l js --lib axios --network allow=api.example.org --timeout 10s`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := f.given()
			err = cmp.Or(err,
				into(&o.Limits.Timeout)(timeoutFlag("timeout", timeout)),
				into(&o.Limits.Output)(sizeFlag("output", output, 1)))
			if err != nil {
				return err
			}
			err = llmsandbox.CreateTemplate(args[0], llmsandbox.Template{
				Language: o.Language, Image: o.Image, Environment: o.Environment, Libraries: o.Libraries, Imports: o.Imports, Env: o.Env,
				Limits: o.Limits, Network: o.Network.Mode, Allow: o.Network.Allow,
			})
			if err != nil {
				return err
			}
			fmt.Printf("Template %s is there. Install what it needs with: llmsandbox template warm %s\n", args[0], args[0])
			return nil
		},
	}
	set := cmd.Flags()
	f.registerContent(set, "`LANGUAGE` of the code (default: python)")
	f.registerImports(set)
	f.registerShared(set)
	set.Lookup("environment").Usage = "use environment `NAME`, such as data-science"
	set.Lookup("image").Usage = "root filesystem: registry `IMAGE`"
	set.StringVar(&timeout, "timeout", "", "time limit of a run: `DURATION` such as 10s, or 'unlimited' (default 60s)")
	set.StringVar(&output, "output", "", "output limit: `SIZE` such as 10m, or 'unlimited' (default 10m)")
	return cmd
}

func newTemplateListCommand() *cobra.Command {
	return newList(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List templates and what is in them",
		Example: `  llmsandbox template ls
  llmsandbox template ls --json`,
	}, "names", func(context.Context) ([]llmsandbox.TemplateInfo, error) { return llmsandbox.Templates() },
		func(t llmsandbox.TemplateInfo) string { return t.Name }, printTemplates)
}

func printTemplates(list []llmsandbox.TemplateInfo) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "NAME\tLANGUAGE\tIMAGE\tENVIRONMENT\tLIBRARIES\tIMPORTS\tMEMORY\tNETWORK")
	for _, t := range list {
		memory := "-"
		switch {
		case t.Limits.Memory > 0:
			memory = bytesize.Format(t.Limits.Memory)
		case t.Limits.Memory < 0:
			memory = unlimited
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.Language, cmp.Or(t.Image, "-"), cmp.Or(t.Environment, "-"),
			cmp.Or(strings.Join(t.Libraries, " "), "-"), cmp.Or(strings.Join(t.Imports, " "), "-"), memory, cmp.Or(networkText(t.Network, t.Allow), "-"))
	}
	return w.Flush()
}

func newTemplateWarmCommand() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "warm [flags] NAME",
		Short: "Install what a template needs, and check it",
		Long: `Pull the image of a template, install its environment and libraries, prepare the caches of its
language and import its modules, by opening a sandbox with it and closing it again. The first
use then does not wait for that. Warm each backend that you use.`,
		Example: `  llmsandbox template warm data
  llmsandbox template warm data --backend docker`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.template = args[0]
			return f.warm(cmd.Context())
		},
	}
	set := cmd.Flags()
	f.place.register(set)
	set.BoolVar(&f.bestEffort, "best-effort", false, "continue if this machine cannot enforce a limit that the template sets")
	f.libraries.registerHow(set, "install-timeout")
	stderr.register(set)
	return cmd
}

func (f *sandboxFlags) warm(ctx context.Context) error {
	o, err := f.given()
	if err != nil {
		return err
	}
	if o, err = o.WithTemplate(); err != nil {
		return err
	}
	f.place.Engine.KeepImage = f.place.onEngine() && o.Image != "" // otherwise it goes with the sandbox
	if o, err = f.complete(o, false); err != nil {
		return err
	}
	o.Progress = stderr.show
	warmed := stderr.begin("Warming template " + f.template)
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return opening(ctx, &f.place, o.Image, err)
	}
	if err := sb.Close(); err != nil {
		return fmt.Errorf("close the sandbox: %w", err)
	}
	warmed()
	warnUnenforced(sb.Capabilities(), &f.place)
	fmt.Printf("Template %s is ready. Use it with: llmsandbox run --template %s FILE\n", f.template, f.template)
	return nil
}

func newTemplateRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME...",
		Short:   "Remove templates",
		Long:    `Remove templates. Installed packages and images stay, and so do sandboxes.`,
		Example: `  llmsandbox template rm data web`,
		Args:    cobra.MinimumNArgs(1),
		RunE:    each(func(_ context.Context, name string) error { return llmsandbox.RemoveTemplate(name) }),
	}
}
