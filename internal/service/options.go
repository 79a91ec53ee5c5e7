package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/security"
)

// withTemplate gives options what is in the operator's template that they name. What that brings is bounded as what a request asks for itself.
func withTemplate(o llmsandbox.Options) (llmsandbox.Options, error) {
	_, err := llmsandbox.Options{Template: o.Template}.WithTemplate()
	switch {
	case errors.Is(err, llmsandbox.ErrTemplateNotFound):
		return o, errclass.Errorf(llmsandbox.ErrTemplateNotFound, "template: the server has none with the name %q", o.Template)
	case err != nil:
		// The file is the operator's to mend: no class of it is the request's, so that its path is logged and not answered.
		return o, fmt.Errorf("template %s: %v", o.Template, err)
	}
	return o.WithTemplate()
}

// checkEnvironment fails for a lock of the operator's that cannot be read, as withTemplate does for a template. Open finds all else.
func checkEnvironment(name string) error {
	if name == "" || environments.CheckName(name) != nil {
		return nil
	}
	if _, err := environments.Find(name); err != nil && !errors.Is(err, llmsandbox.ErrEnvironmentNotFound) {
		return fmt.Errorf("environment %s: %v", name, err)
	}
	return nil
}

// boundArtifacts bounds what results carry by what the operator's do.
func (c *Config) boundArtifacts(a *llmsandbox.ArtifactOptions) error {
	own := c.Sandbox.Artifacts
	switch {
	case *a == llmsandbox.ArtifactOptions{}:
		*a = own
		return nil
	case own.Off && !a.Off:
		return fmt.Errorf("artifacts: %w: results have none", ErrNotAllowed)
	}
	count, bytes := int64(a.MaxCount), a.MaxBytes
	err := cmp.Or(
		atMost("artifacts.max_count", &count, cmp.Or(int64(own.MaxCount), defaultArtifacts), 1),
		atMost("artifacts.max_bytes", &bytes, cmp.Or(own.MaxBytes, defaultArtifactBytes), 1),
	)
	a.MaxCount, a.MaxBytes = int(count), bytes
	return err
}

// What zero means in llmsandbox.ArtifactOptions.
const (
	defaultArtifacts     = 64
	defaultArtifactBytes = 64 << 20
)

// artifactsText is what a label has of options.
func artifactsText(a llmsandbox.ArtifactOptions) string {
	text, _ := json.Marshal(a) // numbers and truth values only
	return string(text)
}

// artifactsOf are the options in a label. What is on the sandbox is not trusted to be what the operator allows.
func (c *Config) artifactsOf(label string) llmsandbox.ArtifactOptions {
	var a llmsandbox.ArtifactOptions
	if label == "" || json.Unmarshal([]byte(label), &a) != nil || c.boundArtifacts(&a) != nil {
		return c.Sandbox.Artifacts
	}
	return a
}

// boundRights refuses rights in the sandbox that the operator's own sandboxes neither have nor can get.
func (c *Config) boundRights(o *llmsandbox.Options) error {
	own := c.Sandbox
	user, _, _ := strings.Cut(own.User, ":")
	root := own.Sudo || user == "root" || user == "0"
	switch {
	case o.User != "" && o.User != own.User && !root:
		return fmt.Errorf("user: %w: code runs as %s", ErrNotAllowed, cmp.Or(own.User, "an unprivileged user"))
	case o.Sudo && !root:
		return fmt.Errorf("sudo: %w: code does not become root", ErrNotAllowed)
	case o.WritableRoot && !own.WritableRoot:
		return fmt.Errorf("writable_root: %w: code writes to the working directory and /tmp only", ErrNotAllowed)
	case o.BestEffort && !own.BestEffort:
		return fmt.Errorf("best_effort: %w: all limits are enforced", ErrNotAllowed)
	}
	o.Sudo, o.WritableRoot, o.BestEffort = o.Sudo || own.Sudo, own.WritableRoot, own.BestEffort
	return nil
}

// checkImports has the policy look at modules as at code that imports them.
func (s *Service) checkImports(ctx context.Context, o llmsandbox.Options) error {
	if len(o.Imports) == 0 {
		return nil
	}
	program := security.Program{Language: cmp.Or(o.Language, llmsandbox.DefaultLanguage), Code: []byte("import " + strings.Join(o.Imports, "\nimport ") + "\n")}
	_, refused, err := s.cfg.Sandbox.Policy.Check(ctx, program)
	if err == nil && refused != "" {
		err = errclass.Errorf(llmsandbox.ErrRefused, "imports: %s", refused)
	}
	return err
}
