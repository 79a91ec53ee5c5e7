package llmsandbox

import (
	"context"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// InstallOptions say how libraries are installed. The zero value installs from the
// registries that this machine's package tools are configured for.
type InstallOptions struct {
	// Offline uses only what is cached or in Local; no network.
	Offline bool
	// Local is a folder of this machine with wheels, tarballs or gems to install from.
	Local string
	// Timeout bounds one installation; 0 means ten minutes.
	Timeout time.Duration
}

// defaultInstallTimeout is what a zero InstallOptions.Timeout means.
const defaultInstallTimeout = 10 * time.Minute

// Install makes libraries of the sandbox's language importable for all later runs,
// commands and kernels. Each is named as its ecosystem names it, with a version
// constraint if need be: "six", "requests>=2,<3", "@types/node@20", "nokogiri:1.15.0".
//
// They are installed in a sandbox of their own, which has no files of this one, network to
// nothing but the package registries, and its own limits; what it makes is cached by
// language, toolchain, image and list, and copied into this sandbox. A list that is cached
// needs no network. Installing one that the sandbox has already does nothing, and so does
// an empty one. opts may be nil; then Options.Install counts.
//
// It fails with ErrInvalid for what is no name of a library, before anything runs, with an
// *InstallError when the package tool failed, with ErrToolchain when there is none, and
// with ErrUnsupported for a language or backend that has no libraries.
func (s *Sandbox) Install(ctx context.Context, libraries []string, opts *InstallOptions) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.install(ctx, s.language.Name, libraries, opts)
}

func (s *Sandbox) install(ctx context.Context, lang string, libraries []string, opts *InstallOptions) error {
	if len(libraries) == 0 {
		return nil
	}
	language, err := all.Get(lang)
	if err != nil {
		return err
	}
	if err := s.policy.checkLibraries(language, libraries); err != nil {
		return err
	}
	if opts == nil {
		opts = &s.libraries.defaults
	}
	info := s.machine.Info()
	q, err := newLibraryRequest(s.libraries.keeper, language, libraries, *opts, backend.Spec{
		Image: s.libraries.image(info), Language: info.Language, Progress: s.libraries.progress,
	})
	if err != nil {
		return err
	}
	return s.libraries.add(ctx, s, q)
}
