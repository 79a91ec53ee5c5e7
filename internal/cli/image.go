package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newImageCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "image",
		Short: "Pull, list and remove images of the local backend",
		Long: `Pull, list and remove images of the local backend, which needs no daemon. An image is a
registry reference, an OCI layout directory or a docker save tar.`,
		Example: `  llmsandbox image pull registry.example/tools:1
  llmsandbox image pull ./saved.tar
  llmsandbox run --image ./layout:latest -l python -c 'print(1)'`,
	}, newImagePullCommand(), newImageListCommand(), newImageRemoveCommand(), newImagePruneCommand())
}

// withStore runs a command with the store of images.
func withStore(run func(*cobra.Command, *ociimage.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		store, err := imageStore()
		if err != nil {
			return err
		}
		return run(cmd, store, args)
	}
}

func newImagePullCommand() *cobra.Command {
	var platform string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image, or update it",
		Example: `  llmsandbox image pull registry.example/tools:1
  llmsandbox image pull --platform linux/arm64 registry.example/tools:1
  llmsandbox image pull oci:/srv/layout:latest`,
		Args: cobra.ExactArgs(1),
		RunE: withStore(func(cmd *cobra.Command, store *ociimage.Store, args []string) error {
			img, err := store.Pull(cmd.Context(), args[0], ociimage.Options{Platform: platform, Progress: stderr.show})
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
		}),
	}
	stderr.register(cmd.Flags())
	cmd.Flags().StringVar(&platform, "platform", "", "pull for this `PLATFORM`, os/arch[/variant], instead of this machine's")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the image as a JSON object")
	return cmd
}

func newImageListCommand() *cobra.Command {
	return newList(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List local images",
		Example: `  llmsandbox image list
  llmsandbox image list --json`,
	}, "IDs", func(context.Context) ([]ociimage.Info, error) {
		store, err := imageStore()
		if err != nil {
			return nil, err
		}
		return store.List()
	}, func(i ociimage.Info) string { return i.ID }, printImages)
}

func printImages(images []ociimage.Info) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "NAME\tID\tPLATFORM\tSIZE\tCREATED\tFETCHED\tIN USE")
	for _, i := range images {
		names := i.Names
		if len(names) == 0 {
			names = []string{"-"}
		}
		for _, n := range names {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", termsafe.String(n), shortID(i.ID), termsafe.String(i.Platform),
				bytesize.Format(i.Size), day(i.Created), day(i.Pulled), yesNo(i.InUse))
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

func newImageRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm IMAGE...",
		Short: "Remove images that no sandbox uses",
		Example: `  llmsandbox image rm registry.example/tools:1
  llmsandbox image rm 3f1c2d4e5a6b`,
		Args: cobra.MinimumNArgs(1),
		RunE: withStore(func(cmd *cobra.Command, store *ociimage.Store, args []string) error {
			for _, ref := range args {
				removed, err := store.Remove(ref)
				if err != nil {
					return err
				}
				printRemoved(removed)
			}
			return nil
		}),
	}
}

func newImagePruneCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove unused images",
		Long: `Remove images without a name, layers without an image, and files of interrupted pulls.
With --all, remove every image that no sandbox uses.`,
		Example: `  llmsandbox image prune
  llmsandbox image prune --all`,
		Args: cobra.NoArgs,
		RunE: withStore(func(cmd *cobra.Command, store *ociimage.Store, args []string) error {
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
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also remove images that have a name")
	setOnlyHere(cmd.Flags(), "all")
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

// languageImage is what a language runs in when no image is named.
type languageImage struct {
	Language string `json:"language"`
	Image    string `json:"image"` // "host" for this machine's own toolchains
	Present  bool   `json:"present"`
	// Size is in bytes, of an image that is present.
	Size int64 `json:"size_bytes,omitempty"`
	// Official is used where the engine does not have the project's own.
	Official string `json:"official,omitempty"`
	// Missing are programs that the host's toolchains lack.
	Missing []string `json:"missing,omitempty"`
}

func newImagesCommand() *cobra.Command {
	var place place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Show the default image for each language",
		Long: `Show the image that each language uses without --image, and whether the backend has it.
Docker and Podman use the project's image if they have it. Otherwise they pull the official
image of the language on first use. The local backend uses this machine's own toolchains;
llmsandbox image list shows the images you pulled for it. A Kubernetes cluster does not
report the images of its nodes.`,
		Example: `  llmsandbox images --backend docker
  llmsandbox images --backend podman --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := place.languageImages(cmd.Context())
			if err != nil {
				return placed(&place, err)
			}
			if asJSON {
				return printJSON(rows)
			}
			return printLanguageImages(rows)
		},
	}
	place.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// languageImages looks up the image of each language.
func (p *place) languageImages(ctx context.Context) ([]languageImage, error) {
	if err := p.check("", false); err != nil {
		return nil, err
	}
	rows := make([]languageImage, 0, len(all.All()))
	if p.onCluster() {
		return nil, fmt.Errorf("a cluster does not tell which images its nodes have or can pull: a sandbox is made from its language's default image, such as %s, or from what --image names", pythonImage())
	}
	if !p.onEngine() {
		for _, l := range all.All() {
			missing := missingPrograms(l)
			rows = append(rows, languageImage{Language: l.Name, Image: "host", Present: len(missing) == 0, Missing: missing})
		}
		return rows, nil
	}
	b, err := p.engine()
	if err != nil {
		return nil, err
	}
	for _, l := range all.All() {
		i, err := b.LanguageImage(ctx, l.Name)
		if err != nil {
			return nil, err
		}
		d, _ := defaultimage.For(l.Name)
		rows = append(rows, languageImage{Language: l.Name, Image: i.Name, Present: i.Present, Size: i.Size, Official: d.Official})
	}
	return rows, nil
}

// pythonImage is the default image of the default language.
func pythonImage() string {
	d, _ := defaultimage.For(llmsandbox.DefaultLanguage)
	return d.Name
}

func printLanguageImages(rows []languageImage) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "LANGUAGE\tIMAGE\tLOCAL\tSIZE\tOFFICIAL")
	for _, r := range rows {
		there, size, official := "yes", "-", "-"
		switch {
		case len(r.Missing) > 0:
			there = "no " + r.Missing[0]
		case r.Image == "":
			r.Image, there = "-", "-"
		case !r.Present:
			there = "no, pulled when needed"
		}
		if r.Size > 0 {
			size = bytesize.Format(r.Size)
		}
		if r.Official != "" {
			official = r.Official
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Language, termsafe.String(r.Image), there, size, official)
	}
	return w.Flush()
}

// overwriteFlag adds --overwrite-tag, which names again what is overwritten.
func overwriteFlag(set *pflag.FlagSet, tag *string) {
	set.StringVar(tag, "overwrite-tag", "", "repeat `TAG` here to confirm replacing an existing image")
}

func newCommitCommand() *cobra.Command {
	var place place
	var overwrite, push string
	cmd := &cobra.Command{
		Use:   "commit ID TAG",
		Short: "Create an image from a sandbox",
		Long: `Create an image from a sandbox, and print its ID. The image contains the working directory
and, if it was writable, the root filesystem. A sandbox of the new image starts with those
files. Processes, /tmp and environment variables are not included.

On the local backend and on Kubernetes, TAG is the path of a file that ends in .tar: an OCI layout
that --image and docker load read. If the sandbox has the host's toolchains, only --image reads it,
on the same host. With --push, the image is sent to a registry, too, with the credentials of docker
login, and its name there is printed instead.`,
		Example: `  llmsandbox commit sb-1234 tools.tar
  llmsandbox run --image tools.tar app.py
  llmsandbox commit --backend docker sb-1234 tools:2`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if push != "" && !place.commitsToFile() {
				return fmt.Errorf("--push %s: the image is in the engine: push it from there, such as with docker push", push)
			}
			var id string
			err := onSandbox(cmd.Context(), &place, args[0], func(sb *llmsandbox.Sandbox) (err error) {
				id, err = commit(cmd.Context(), sb, args[1], overwrite)
				return err
			})
			if err == nil && push != "" {
				pushed := stderr.begin("Pushing " + push)
				id, err = local.PushImage(cmd.Context(), args[1], push)
				pushed()
				if err != nil {
					err = fmt.Errorf("%w; the image is in %s", err, args[1])
				}
			}
			if err == nil {
				fmt.Println(id)
			}
			return err
		},
	}
	place.register(cmd.Flags())
	overwriteFlag(cmd.Flags(), &overwrite)
	cmd.Flags().StringVar(&push, "push", "", "push the image, where it is a file, as `IMAGE`, such as registry.example/tools:2")
	setOnlyHere(cmd.Flags(), "overwrite-tag")
	return cmd
}

// commit makes the image, says what is not in it, and returns the image's id.
func commit(ctx context.Context, sb *llmsandbox.Sandbox, tag, overwrite string) (string, error) {
	committed := stderr.begin("Committing " + tag)
	res, err := sb.Commit(ctx, tag, &llmsandbox.CommitOptions{Overwrite: overwrite})
	committed()
	for _, s := range res.Skipped {
		stderr.note("llmsandbox: not in the image: " + termsafe.String(s))
	}
	return res.ID, err
}

// checkCommit says which flags of run make no sense with --commit.
func (f *runFlags) checkCommit() error {
	switch {
	case f.commit != "" && f.place.commitsToFile() && filepath.Ext(f.commit) != ".tar":
		return fmt.Errorf("--commit %s: on the backend %s, the image of a sandbox is a file: give a path that ends in .tar, or add --backend docker or --backend podman", f.commit, f.place.Backend)
	case f.overwrite != "" && f.commit == "":
		return errors.New("--overwrite-tag needs --commit")
	case f.overwrite != "" && f.overwrite != f.commit:
		return fmt.Errorf("--overwrite-tag %s is not the tag of --commit %s: it names again what is to be overwritten", f.overwrite, f.commit)
	}
	return nil
}

// commitAfter makes the image that --commit asks for. It makes none when the program failed:
// what it left is incomplete.
func (f *runFlags) commitAfter(ctx context.Context, sb *llmsandbox.Sandbox, res *llmsandbox.Result) error {
	if f.commit == "" {
		return nil
	}
	if res.Status != llmsandbox.StatusOK {
		fmt.Fprintf(stderr, "llmsandbox: not committed as %s: the run ended as %s\n", f.commit, res.Status)
		return nil
	}
	id, err := commit(ctx, sb, f.commit, f.overwrite)
	if err != nil {
		return placed(&f.place, err)
	}
	stderr.note(fmt.Sprintf("llmsandbox: committed as %s (%s)", f.commit, id))
	return nil
}
