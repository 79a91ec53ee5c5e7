package image

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/registry"
)

// hubKey is what engines call the default registry where they look up credentials.
const hubKey = "https://index.docker.io/v1/"

// baseCredentials returns the credentials for the registries that a Dockerfile takes its
// images from, by the registries' names.
func (s *Store) baseCredentials(ctx context.Context, dockerfile string, args map[string]string) (map[string]registry.AuthConfig, error) {
	if s.Auth == nil {
		return nil, nil
	}
	all := map[string]registry.AuthConfig{}
	for _, ref := range bases(dockerfile, args) {
		key := reference.Domain(ref)
		if key == "docker.io" {
			key = hubKey
		}
		if _, ok := all[key]; ok {
			continue
		}
		auth, err := s.Auth(ctx, ref.String())
		if err != nil {
			return nil, fmt.Errorf("credentials for the registry of base image %s: %w", ref, err)
		}
		if auth == "" {
			continue
		}
		raw, err := base64.URLEncoding.DecodeString(auth)
		var c registry.AuthConfig
		if err == nil {
			err = json.Unmarshal(raw, &c)
		}
		if err != nil { // not its text, which may have parts of the secret
			return nil, fmt.Errorf("credentials for the registry of base image %s are not in the engine's form", ref)
		}
		all[key] = c
	}
	return all, nil
}

// bases are the images that a Dockerfile's FROM lines name, with the arguments before
// the first FROM filled in. What is not understood is the builder's to complain about.
func bases(dockerfile string, args map[string]string) []reference.Named {
	vars := map[string]string{}
	stages := map[string]bool{"scratch": true}
	var list []reference.Named
	inStage := false
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "ARG":
			if inStage {
				continue // only a stage sees it
			}
			name, value, _ := strings.Cut(words[1], "=")
			if given, ok := args[name]; ok {
				value = given
			}
			vars[name] = strings.Trim(value, `"'`)
		case "FROM":
			inStage = true
			words = words[1:]
			for len(words) > 1 && strings.HasPrefix(words[0], "--") {
				words = words[1:]
			}
			name := os.Expand(words[0], func(v string) string {
				v, or, _ := strings.Cut(v, ":-")
				if vars[v] == "" {
					return or
				}
				return vars[v]
			})
			if ref, err := reference.ParseNormalizedNamed(name); err == nil && !stages[name] {
				list = append(list, reference.TagNameOnly(ref))
			}
			if len(words) == 3 && strings.EqualFold(words[1], "AS") {
				stages[words[2]] = true
			}
		}
	}
	return list
}
