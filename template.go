package llmsandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/templates"
)

// A Template is what many sandboxes have in common. It is kept under a name for [Options.Template]. It holds
// no code, and nothing of this machine: no mounts and no paths. Secrets do not belong into it.
type Template struct {
	// Language is the name of a language; empty means python. Other fields are what those of the same
	// name of Options are.
	Language string `json:"language"`
	// Image is "host" or a registry reference.
	Image string `json:"image,omitempty"`
	// Environment is a name.
	Environment string            `json:"environment,omitempty"`
	Libraries   []string          `json:"libraries,omitempty"`
	Imports     []string          `json:"imports,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Limits      Limits            `json:"limits,omitzero"`
	// Network and Allow are Options.Network's Mode and Allow.
	Network NetworkMode `json:"network,omitempty"`
	Allow   []string    `json:"allow,omitempty"`
}

// A TemplateInfo describes a template.
type TemplateInfo struct {
	Name string `json:"name"`
	Path string `json:"path"` // its file
	Template
}

// templateVersion is the version of the format of a template's file.
const templateVersion = 1

// templateFile is the content of one.
type templateFile struct {
	Version int `json:"version"`
	Template
}

// CreateTemplate keeps a template under a name, in place of one of that name. Names are of a-z, 0-9 and '-', and are
// those of the user's configuration directory: other users have others, and so has a program with another
// LLMSANDBOX_CONFIG_DIR. It fails with ErrInvalid, ErrUnknownLanguage, ErrUnsupported, ErrImageNotFound or
// ErrEnvironmentNotFound for what no sandbox can be opened with. Nothing is installed, and no sandbox opened.
func CreateTemplate(name string, t Template) error {
	err := t.check()
	if err == nil && t.Environment != "" {
		_, err = environments.Find(t.Environment)
	}
	if err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	text, err := t.encode()
	if err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	return templates.Save(name, text)
}

// Templates lists the templates by their names. One that is not valid ends it with an error.
func Templates() ([]TemplateInfo, error) {
	names, err := templates.Names()
	if err != nil {
		return nil, err
	}
	var list []TemplateInfo
	for _, name := range names {
		info, err := readTemplate(name)
		if errors.Is(err, ErrTemplateNotFound) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// RemoveTemplate removes a template, which sandboxes that are open do not need. It fails with ErrTemplateNotFound
// when there is none.
func RemoveTemplate(name string) error { return templates.Remove(name) }

// WithTemplate returns options whose Template is empty, and that have what is in the template where they are
// zero. Env has the variables of both, those of the options first; Libraries, Imports and Network are
// taken as a whole, Limits one by one. It fails with ErrTemplateNotFound, and with ErrInvalid where Language is another one than the
// template's. [Open] calls it; so may who wants to know first what a sandbox will be opened with.
func (o Options) WithTemplate() (Options, error) {
	if o.Template == "" {
		return o, nil
	}
	t, err := readTemplate(o.Template)
	if err != nil {
		return o, err
	}
	if o.Language != "" {
		lang, err := all.Get(o.Language)
		if err != nil {
			return o, err
		}
		if lang.Name != t.Language {
			return o, fmt.Errorf("template %s: %w: it is for %s, and the language is %s: use a template for %s, or none", o.Template, ErrInvalid, t.Language, lang.Name, lang.Name)
		}
	}
	o.Template, o.Language = "", t.Language
	o.Image = cmp.Or(o.Image, t.Image)
	o.Environment = cmp.Or(o.Environment, t.Environment)
	if len(o.Libraries) == 0 {
		o.Libraries = t.Libraries
	}
	if len(o.Imports) == 0 {
		o.Imports = t.Imports
	}
	if len(t.Env) > 0 {
		maps.Copy(t.Env, o.Env)
		o.Env = t.Env
	}
	o.Limits = o.Limits.or(t.Limits)
	if o.Network.Mode == "" && len(o.Network.Allow) == 0 {
		o.Network.Mode, o.Network.Allow = t.Network, t.Allow
	}
	return o, nil
}

// or has what is zero from other.
func (l Limits) or(other Limits) Limits {
	return Limits{
		Memory: cmp.Or(l.Memory, other.Memory), CPUs: cmp.Or(l.CPUs, other.CPUs), PIDs: cmp.Or(l.PIDs, other.PIDs),
		Disk: cmp.Or(l.Disk, other.Disk), Timeout: cmp.Or(l.Timeout, other.Timeout), Output: cmp.Or(l.Output, other.Output),
	}
}

func readTemplate(name string) (TemplateInfo, error) {
	text, path, err := templates.Read(name)
	if err != nil {
		return TemplateInfo{}, err
	}
	t, err := decodeTemplate(text)
	if err != nil {
		return TemplateInfo{}, fmt.Errorf("template %s: %w: make it anew with llmsandbox template create %s", path, err, name)
	}
	return TemplateInfo{Name: name, Path: path, Template: t}, nil
}

func (t Template) encode() ([]byte, error) {
	text, err := json.MarshalIndent(templateFile{templateVersion, t}, "", "  ")
	return append(text, '\n'), err
}

// decodeTemplate reads the content of a file. It fails for one that is not valid as a whole.
func decodeTemplate(text []byte) (Template, error) {
	var format struct{ Version int }
	if err := json.Unmarshal(text, &format); err != nil {
		return Template{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if format.Version != templateVersion { // a newer one may have more fields
		return Template{}, fmt.Errorf("%w: version %d of the format is not known, only %d", ErrInvalid, format.Version, templateVersion)
	}
	var f templateFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Template{}, fmt.Errorf("%w: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "json: "))
	}
	err := f.check()
	return f.Template, err
}

// check finds what no sandbox can be opened with, as far as no backend is needed for that. It gives the language its
// own name.
func (t *Template) check() error {
	lang, err := all.Get(cmp.Or(t.Language, DefaultLanguage))
	if err != nil {
		return err
	}
	t.Language = lang.Name
	if t.Image != "" {
		at, err := ociimage.Locate(t.Image)
		if err != nil {
			return err
		}
		if at.OnDisk() {
			return fmt.Errorf("image %s: %w: it is a path of this machine: name an image of a registry", t.Image, ErrInvalid)
		}
	}
	if environments.IsPath(t.Environment) {
		return fmt.Errorf("environment %s: %w: it is a path of this machine: give it a name with llmsandbox setup NAME --from FILE", t.Environment, ErrInvalid)
	}
	if t.Environment != "" {
		if err := environments.CheckName(t.Environment); err != nil {
			return err
		}
	}
	if err := checkLibraryNames(lang, t.Libraries); err != nil {
		return err
	}
	if err := checkImports(lang, t.Imports, ArtifactOptions{}); err != nil {
		return err
	}
	if _, err := envList(nil, t.Env); err != nil {
		return err
	}
	for name, value := range t.Env {
		if !utf8.ValidString(name + value) { // JSON would change it
			return fmt.Errorf("environment variable %q: %w: in a template it is UTF-8", name, ErrInvalid)
		}
	}
	if _, _, err := t.Limits.resolve(); err != nil {
		return err
	}
	_, err = Network{Mode: t.Network, Allow: t.Allow}.policy()
	return err
}

func checkLibraryNames(lang *language.Language, libraries []string) error {
	if len(libraries) > 0 && lang.Libraries == nil {
		return fmt.Errorf("libraries: %w: %s has no way to install them", ErrUnsupported, lang.Title)
	}
	for _, name := range libraries {
		if _, err := lang.Libraries.Check(name); err != nil {
			return asInvalid(err)
		}
	}
	return nil
}
