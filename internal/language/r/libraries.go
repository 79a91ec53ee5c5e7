package r

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program:    "Rscript",
	Installed:  []string{"lib/R/library", "/usr/lib/R/library", "/usr/lib/R/site-library", "/usr/local/lib/R/site-library"},
	Needs:      [][]string{{"Rscript"}, {"R"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
}

// check takes a package's name, and a version behind an at sign.
var check = registries.Check("R", `^[A-Za-z][A-Za-z0-9.]*[A-Za-z0-9](?:@[0-9]+(?:[.-][0-9]+)+)?$`,
	"write it like data.table or jsonlite@1.8.8, without spaces, paths or addresses", nil)

//go:embed libraries.R
var installer []byte

// packages is the directory of a library directory that is a library of R's.
const packages = "library"

// install has R build and install the packages.
func install(src language.InstallSource) (language.Plan, error) {
	script := path.Join(src.TempDir, ".install.R")
	local := "-"
	if src.Local != "" {
		local = src.Local
	}
	argv := []string{src.Program("Rscript"), "--vanilla", script, path.Join(src.Dir, packages), path.Join(src.TempDir, ".install"), local}
	return language.Plan{
		Files: append([]language.File{{Path: script, Data: installer, Mode: 0o644}}, src.Registries.Files...),
		Steps: []language.Step{{Argv: append(argv, src.Libraries...), Dir: src.TempDir, Env: src.Registries.Env}},
	}, nil
}

func use(dirs []string, current func(string) string) []string {
	return []string{registries.Prepend("R_LIBS", dirs, packages, current)}
}

// configured prints the repositories that R is configured for; where a user would be
// asked for a mirror, it is the first of the list that R brings along.
const configured = `r <- getOption("repos"); r[r == "@CRAN@"] <- getCRANmirrors(local.only = TRUE)[1, "URL"]; cat(r, sep = "\n")`

// findRegistries are the repositories that R is configured for on this machine.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	out, err := ask.Program("Rscript", "-e", configured)
	if err != nil {
		return r, fmt.Errorf("ask R for its repositories: %w", err)
	}
	var list []string
	for _, address := range strings.Fields(string(out)) {
		clean, err := registries.Add(&r, address)
		if err != nil {
			return r, fmt.Errorf("a repository of R: %w", err)
		}
		list = append(list, clean)
	}
	if list == nil {
		return r, fmt.Errorf("%w: R has no repository: set one with options(repos)", registries.ErrConfiguration)
	}
	r.Env = []string{"SANDBOX_R_REPOSITORIES=" + strings.Join(list, " ")}
	trusted, err := registries.Trust(&r, ask, ask.Env("CURL_CA_BUNDLE"))
	if trusted {
		r.Env = append(r.Env, "CURL_CA_BUNDLE="+registries.CA)
	}
	return r, err
}

// libraryName is the name without a version. CRAN's names have a case.
var libraryName = registries.NameBefore("@")
