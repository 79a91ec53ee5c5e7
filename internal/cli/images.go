package cli

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

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
		Short: "Tell which image each language runs in when none is named",
		Long: `Tell which image each language runs in on a backend when no --image is named, and whether
it is there. A container engine uses the project's own image when it has it, and else the
language's official one, which it pulls when it is first needed. The local backend uses this
machine's own toolchains; what images it has fetched lists llmsandbox image list. A cluster
does not tell which images its nodes have.`,
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
	place.register(cmd.Flags(), "what would run the sandboxes")
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
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LANGUAGE\tIMAGE\tTHERE\tSIZE\tOFFICIAL")
	for _, r := range rows {
		there, size, official := "yes", "-", "-"
		switch {
		case len(r.Missing) > 0:
			there = "no " + r.Missing[0]
		case !r.Present:
			there = "no, is pulled"
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
