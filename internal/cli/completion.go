package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
)

// completionTime is how long a backend may take to answer a shell that completes a word.
const completionTime = 2 * time.Second

const (
	noFiles   = cobra.ShellCompDirectiveNoFileComp
	withFiles = cobra.ShellCompDirectiveDefault
)

// candidates are the words that a command knows, each with a description after a tab if it has one.
type candidates func(context.Context, *cobra.Command) []string

// flagCompletions complete the values of flags, by their names.
func flagCompletions() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"lang":           complete(languageNames, noFiles),
		"language":       complete(languageNames, noFiles),
		"warm-language":  complete(languageNames, noFiles),
		"backend":        complete(fixed(backendNames...), noFiles),
		"policy":         complete(fixed(security.Presets()...), withFiles),
		"print":          complete(fixed(security.Presets()...), withFiles),
		"environment":    complete(environmentNames, withFiles),
		"template":       complete(templateNames, noFiles),
		"network":        complete(fixed("none", "full", "allow="), noFiles),
		"runtime-option": complete(runtimeOptionKeys, noFiles),
		"image":          complete(imageNames, withFiles),
		"pull-policy":    complete(fixed("Always", "IfNotPresent", "Never"), noFiles),
		"text-errors":    complete(fixed(textReplace, textIgnore, textBackslash, textSurrogateEscape, textStrict), noFiles),
		"log":            complete(fixed("debug", "info", "warn", "error"), noFiles),
	}
}

// argCompletions complete the arguments of commands, by the commands' names.
func argCompletions() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"cp":                completeCopy,
		"rm":                complete(sandboxIDs, noFiles),
		"stats":             complete(sandboxIDs, noFiles),
		"cache rm":          complete(layerKeys, noFiles),
		"image rm":          complete(imageNames, noFiles),
		"setup":             first(complete(environmentNames, noFiles)),
		"environments show": first(complete(environmentNames, noFiles)),
		"environments rm":   first(complete(environmentNames, noFiles)),
		"template warm":     first(complete(templateNames, noFiles)),
		"template rm":       complete(templateNames, noFiles),
		"exec":              first(complete(sandboxIDs, noFiles)),
		"logs":              first(complete(sandboxIDs, noFiles)),
		"install":           first(complete(sandboxIDs, noFiles)),
		"network":           first(complete(sandboxIDs, noFiles)),
		"deadline":          first(complete(sandboxIDs, noFiles)),
		"port-forward":      first(complete(sandboxIDs, noFiles)),
		"commit":            first(complete(sandboxIDs, noFiles)),
	}
}

// setCompletion has shells complete the values of flags and the arguments of commands.
func setCompletion(root *cobra.Command) {
	flags, args := flagCompletions(), argCompletions()
	var set func(*cobra.Command)
	set = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			set(c)
		}
		for name, f := range flags {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, f) // fails for flags that are not there
			}
		}
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if f := args[path]; f != nil {
			cmd.ValidArgsFunction = f
		}
	}
	set(root)
}

// complete offers the candidates that begin as the word does, but those that are arguments already.
// What ends with "=" goes on in the same word.
func complete(from candidates, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		var list []string
		for _, c := range from(ctx, cmd) {
			if word, _, _ := strings.Cut(c, "\t"); strings.HasPrefix(word, begun) && !slices.Contains(args, word) {
				list = append(list, c)
			}
		}
		if len(list) == 1 {
			if word, _, _ := strings.Cut(list[0], "\t"); strings.HasSuffix(word, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
		return list, directive
	}
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return f(cmd, args, begun)
	}
}

// completeCopy completes a path of this machine, or the ID before a path in a sandbox.
func completeCopy(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 || strings.ContainsAny(begun, ":/") {
		return nil, withFiles
	}
	list, _ := complete(sandboxIDs, withFiles)(cmd, args, begun)
	for i, c := range list {
		id, about, _ := strings.Cut(c, "\t")
		list[i] = id + ":\t" + about
	}
	if len(list) > 0 {
		return list, cobra.ShellCompDirectiveNoSpace
	}
	return nil, withFiles
}

func fixed(words ...string) candidates {
	return func(context.Context, *cobra.Command) []string { return words }
}

func languageNames(_ context.Context, cmd *cobra.Command) []string {
	_ = loadLanguages(cmd.Flags()) // a file that is not valid has none to offer
	var names []string
	for _, l := range all.All() {
		names = append(names, l.Name)
	}
	return names
}

func environmentNames(context.Context, *cobra.Command) []string {
	names, _ := environments.Names() // none to offer, if they cannot be read
	return names
}

func templateNames(context.Context, *cobra.Command) []string {
	list, _ := llmsandbox.Templates() // none to offer, if they cannot be read
	var words []string
	for _, t := range list {
		words = append(words, t.Name+"\t"+t.Language)
	}
	return words
}

func runtimeOptionKeys(context.Context, *cobra.Command) []string {
	var words []string
	for _, k := range settings.Keys() {
		words = append(words, k.Name+"=\t"+k.Meaning)
	}
	return words
}

// imageNames are the images that the local backend has, or the default images of another one.
func imageNames(_ context.Context, cmd *cobra.Command) []string {
	var names []string
	if p := placeOf(cmd); p != nil && p.Backend != localName {
		for _, l := range all.All() {
			if d, ok := defaultimage.For(l.Name); ok && !slices.Contains(names, d.Name) {
				names = append(names, d.Name, d.Official)
			}
		}
		return names
	}
	store, err := imageStore()
	if err != nil {
		return nil
	}
	images, _ := store.List() // none to offer, if they cannot be read
	for _, i := range images {
		for _, name := range i.Names {
			names = append(names, termsafe.String(name))
		}
	}
	return names
}

func sandboxIDs(ctx context.Context, cmd *cobra.Command) []string {
	p := placeOf(cmd)
	if p == nil {
		return nil
	}
	b, err := p.open()
	if err != nil {
		return nil
	}
	infos, _ := llmsandbox.List(ctx, b) // none to offer, if the backend does not answer
	var words []string
	for _, i := range infos {
		words = append(words, i.ID+"\t"+termsafe.String(i.Language)+", "+time.Since(i.Created).Round(time.Second).String()+" old")
	}
	return words
}

func layerKeys(ctx context.Context, cmd *cobra.Command) []string {
	p := placeOf(cmd)
	if p == nil {
		return nil
	}
	kept, err := p.layers()
	if err != nil {
		return nil
	}
	layers, _ := kept.List(ctx) // none to offer, if the backend does not answer
	var words []string
	for _, l := range layers {
		words = append(words, l.Key+"\t"+termsafe.String(l.Language+" "+content(l)))
	}
	return words
}

// placeOf is where a command that is being completed looks for sandboxes; nil if it does not say so, or
// wrongly. On Kubernetes it hands over to the program that knows clusters.
func placeOf(cmd *cobra.Command) *place {
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	if configure(cmd) != nil || handOver(cmd.Flags()) != nil || value("backend") == "" {
		return nil
	}
	return &place{Backend: value("backend"), Cluster: clusterFlags{
		Kubeconfig: value("kubeconfig"), Context: value("kube-context"), Namespace: value("namespace"),
	}}
}
