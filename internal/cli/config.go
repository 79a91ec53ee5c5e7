package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/environments"
)

const (
	configName = "config.toml"
	// systemConfig is the configuration of all users. The user's own comes first.
	systemConfig = "/etc/llmsandbox/" + configName
	// maxConfig bounds a configuration file, in bytes.
	maxConfig = 1 << 20
	// variablePrefix begins the variable of a flag: LLMSANDBOX_INSTALL_TIMEOUT is --install-timeout.
	variablePrefix = "LLMSANDBOX_"
	// onlyHere annotates flags that are given on the command line and nowhere else.
	onlyHere = "llmsandbox_only_here"
)

// setOnlyHere keeps flags from being set by variables and configuration files.
func setOnlyHere(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := set.Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[onlyHere] = nil
	}
}

// configurable reports whether variables and configuration files set a flag.
func configurable(f *pflag.Flag) bool {
	_, only := f.Annotations[onlyHere]
	return !only && f.Name != "help" && f.Name != helpAllName && f.Name != "version"
}

// variable is the environment variable that sets a flag.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configure sets the flags that are not on the command line from the environment, or else from the user's
// configuration file or the system's. It leaves them unchanged in the sense of pflag. A flag for other
// backends than the chosen one keeps its default, and so does one that is not for a server that belongs to a program.
func configure(cmd *cobra.Command) error {
	files, err := configFiles()
	if err != nil {
		return err
	}
	backend := cmd.Flags().Lookup("backend")
	if backend != nil {
		if err := configureFlag(cmd, backend, files); err != nil {
			return err
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f != backend && (backend == nil || fitsBackend(f.Name, backend.Value.String())) && fitsOwner(cmd.Flags(), f.Name) {
			err = configureFlag(cmd, f, files)
		}
	})
	return err
}

// fitsBackend reports whether a flag is for a backend, among others.
func fitsBackend(flag, backend string) bool {
	for _, g := range flagGroups {
		if g.backends != nil && slices.Contains(strings.Fields(g.flags), flag) {
			return slices.Contains(g.backends, backend)
		}
	}
	return true
}

// configured is what configure has set flags from, by their names.
var configured = map[string]string{}

// configuredHints say where the flags that an error mentions are set, of those that configure has set.
func configuredHints(text string) []string {
	var hints []string
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if regexp.MustCompile("--" + name + `([^a-z-]|$)`).MatchString(text) {
			hints = append(hints, "--"+name+" is set by "+configured[name])
		}
	}
	return hints
}

// configureFlag sets one flag, if it is not on the command line.
func configureFlag(cmd *cobra.Command, f *pflag.Flag, files []configFile) error {
	if f.Changed || !configurable(f) {
		return nil
	}
	list, many := f.Value.(pflag.SliceValue)
	from, values := variable(f.Name), []string(nil)
	if text := os.Getenv(from); text != "" && many {
		values = strings.Split(strings.Trim(text, "\n"), "\n")
	} else if text != "" {
		values = []string{text}
	}
	for _, file := range files {
		if values != nil {
			break
		}
		from = file.path
		var err error
		if values, err = file.values(cmd, f.Name, many); err != nil {
			return err
		}
	}
	if values == nil {
		return nil
	}
	configured[f.Name] = from
	if many {
		return list.Replace(values)
	}
	if f.Value.Set(values[0]) != nil {
		return fmt.Errorf("%s: %q is not a valid value of --%s, which is of type %s", from, values[0], f.Name, f.Value.Type())
	}
	return nil
}

// A configFile has flags by their names: those of a command in a table with its name, and above the tables
// those of all commands that have them.
type configFile struct {
	path string
	keys map[string]any
}

// configFiles reads the configuration files, the most important first. The current directory is none of
// their places: what lies there may be a stranger's.
func configFiles() ([]configFile, error) {
	paths := []string{systemConfig}
	if dir, err := environments.Dir(); err == nil { // without a home there is no file of the user's own
		paths = []string{filepath.Join(filepath.Dir(dir), configName), systemConfig}
	}
	var files []configFile
	for _, path := range paths {
		file := configFile{path: path}
		text, err := configdir.ReadFile(path, maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = toml.Unmarshal(text, &file.keys)
		}
		if err == nil {
			err = checkConfig(newRootCommand(), file.keys) // with all commands
		}
		if err != nil {
			return nil, fmt.Errorf("configuration file %s: %w", path, withoutCall(err))
		}
		files = append(files, file)
	}
	return files, nil
}

// checkConfig fails for keys that neither are a flag of a command, or of one below it, nor name a command.
func checkConfig(cmd *cobra.Command, keys map[string]any) error {
	var known []string
	addFlags(cmd, &known)
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	for key, value := range keys {
		table, isTable := value.(map[string]any)
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == key })
		switch {
		case isTable && i >= 0:
			if err := checkConfig(cmd.Commands()[i], table); err != nil {
				return err
			}
		case isTable || !slices.Contains(known, key) || i >= 0 && !hasFlag(cmd, key):
			return fmt.Errorf("key %q: %s has no such flag or command%s", key, cmd.CommandPath(), didYouMean(key, known))
		}
	}
	return nil
}

// addFlags adds the names of the configurable flags of a command and of those below it.
func addFlags(cmd *cobra.Command, names *[]string) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if configurable(f) && !slices.Contains(*names, f.Name) {
			*names = append(*names, f.Name)
		}
	})
	for _, c := range cmd.Commands() {
		addFlags(c, names)
	}
}

// hasFlag reports whether a command, or one below it, has a configurable flag.
func hasFlag(cmd *cobra.Command, name string) bool {
	var names []string
	addFlags(cmd, &names)
	return slices.Contains(names, name)
}

// values are what the file sets a command's flag to: nil if it does not. The command's own table comes first.
func (c configFile) values(cmd *cobra.Command, flag string, many bool) ([]string, error) {
	var value any
	table := c.keys
	names := strings.Fields(cmd.CommandPath())[1:]
	for i := 0; ; i++ {
		if v, ok := table[flag]; ok {
			if _, isTable := v.(map[string]any); !isTable {
				value = v
			}
		}
		next, ok := map[string]any(nil), false
		if i < len(names) {
			next, ok = table[names[i]].(map[string]any)
		}
		if !ok {
			break
		}
		table = next
	}
	list, isList := value.([]any)
	switch {
	case value == nil:
		return nil, nil
	case isList && !many:
		return nil, fmt.Errorf("configuration file %s: key %q: it takes one value, not a list", c.path, flag)
	case !isList:
		list = []any{value}
	}
	values := make([]string, 0, len(list))
	for _, item := range list {
		switch item.(type) {
		case string, bool, int64, float64:
			values = append(values, fmt.Sprint(item))
		default:
			return nil, fmt.Errorf("configuration file %s: key %q: use a string, a number or a boolean", c.path, flag)
		}
	}
	return values, nil
}
