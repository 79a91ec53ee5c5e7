package cli

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newImageCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Fetch, list and remove the images of the local backend",
		Long: `Fetch, list and remove the images of the local backend. No daemon is needed: an image is a
registry reference, the folder of an OCI layout or the file of a docker save tar.`,
		Example: `  llmsandbox image pull registry.example/tools:1
  llmsandbox image pull ./saved.tar
  llmsandbox run --image ./layout:latest -l python -c 'print(1)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImagePullCommand(newStore), newImageListCommand(newStore), newImageRemoveCommand(newStore),
		newImagePruneCommand(newStore), newImageInspectCommand(newStore))
	return cmd
}

func newImagePullCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	var platform string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Fetch an image, or what its name means now",
		Example: `  llmsandbox image pull registry.example/tools:1
  llmsandbox image pull --platform linux/arm64 registry.example/tools:1
  llmsandbox image pull oci:/srv/layout:latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			var progress progressShower
			img, err := store.Pull(cmd.Context(), args[0], ociimage.Options{Platform: platform, Progress: progress.show})
			progress.close()
			if err != nil {
				return err
			}
			defer img.Release()
			if !asJSON {
				fmt.Println(img.ID)
				return nil
			}
			info, err := store.Inspect(img.ID)
			if err != nil {
				return err
			}
			info.InUse = false // but for this command
			return printJSON(info)
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "", "os/arch[/variant] instead of this machine's")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the image as a JSON object")
	return cmd
}

func newImageListCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the images that are here",
		Example: `  llmsandbox image list
  llmsandbox image list --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			images, err := store.List()
			if err != nil {
				return err
			}
			return printList(flags, images, func(i ociimage.Info) string { return i.ID }, printImages)
		},
	}
	flags.register(cmd.Flags(), "ids")
	return cmd
}

func printImages(images []ociimage.Info) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tPLATFORM\tSIZE\tCREATED\tFETCHED\tIN USE")
	for _, i := range images {
		names := i.Names
		if len(names) == 0 {
			names = []string{"-"}
		}
		use := "no"
		if i.InUse {
			use = "yes"
		}
		for _, n := range names {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", termsafe.String(n), shortID(i.ID), termsafe.String(i.Platform),
				bytesize.Format(i.Size), day(i.Created), day(i.Pulled), use)
		}
	}
	return w.Flush()
}

func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), 12)]
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func newImageRemoveCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "rm IMAGE...",
		Short: "Remove images by name or id; one in use stays",
		Example: `  llmsandbox image rm registry.example/tools:1
  llmsandbox image rm 3f1c2d4e5a6b`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			for _, ref := range args {
				removed, err := store.Remove(ref)
				if err != nil {
					return err
				}
				printRemoved(removed)
			}
			return nil
		},
	}
}

func newImagePruneCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that lost their name, and what broken pulls left",
		Long: `Remove images that lost their name to a newer one, layers of no image, and what broken
pulls left; with --all every image that no sandbox uses.`,
		Example: `  llmsandbox image prune
  llmsandbox image prune --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			removed, err := store.Prune(cmd.Context(), all)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(removed)
			}
			printRemoved(removed)
			fmt.Printf("freed %s\n", bytesize.Format(removed.Bytes))
			return nil
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also images that have a name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func printRemoved(r ociimage.Removed) {
	for _, n := range r.Names {
		fmt.Println("forgot", termsafe.String(n))
	}
	for _, id := range r.Images {
		fmt.Println("removed", id)
	}
	for _, id := range r.InUse {
		fmt.Println("in use, kept", id)
	}
}

func newImageInspectCommand(newStore func() (*ociimage.Store, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "inspect IMAGE",
		Short:   "Print what is known of an image that is here, as a JSON object",
		Example: `  llmsandbox image inspect registry.example/tools:1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			info, err := store.Inspect(args[0])
			if err != nil {
				return err
			}
			return printJSON(info)
		},
	}
}
