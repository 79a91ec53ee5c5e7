package java

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// settings are what of Maven's settings says where libraries come from.
type settings struct {
	Mirrors []struct {
		ID       string `xml:"id"`
		MirrorOf string `xml:"mirrorOf"`
		URL      string `xml:"url"`
		Blocked  bool   `xml:"blocked"`
	} `xml:"mirrors>mirror"`
	Servers []struct {
		ID       string `xml:"id"`
		Username string `xml:"username"`
		Password string `xml:"password"`
	} `xml:"servers>server"`
	Profiles []struct {
		ID           string       `xml:"id"`
		Default      bool         `xml:"activation>activeByDefault"`
		Repositories []repository `xml:"repositories>repository"`
	} `xml:"profiles>profile"`
	Active []string `xml:"activeProfiles>activeProfile"`
}

type repository struct {
	ID  string `xml:"id"`
	URL string `xml:"url"`
}

// read adds what a file says to what is known already, if it is there.
func (s *settings) read(ask language.Ask, file string) error {
	data, err := ask.File(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = xml.Unmarshal(data, s) // lists grow
	}
	if err != nil {
		return fmt.Errorf("%w: Maven's settings: %w", registries.ErrConfiguration, err)
	}
	return nil
}

// mirrored reports whether a mirror stands for a repository.
func (s *settings) mirrored(id string) bool {
	for _, m := range s.Mirrors {
		parts := strings.Split(m.MirrorOf, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if slices.Contains(parts, "!"+id) {
			continue
		}
		if slices.Contains(parts, id) || slices.Contains(parts, "*") || slices.Contains(parts, "external:*") {
			return true
		}
	}
	return false
}

// sandboxed are the settings for a sandbox: the same mirrors and active repositories,
// without credentials, through the sandbox's proxy.
func (s *settings) sandboxed(r *language.Registries) ([]byte, error) {
	type entry struct {
		ID       string `xml:"id"`
		MirrorOf string `xml:"mirrorOf,omitempty"`
		URL      string `xml:"url"`
		Blocked  bool   `xml:"blocked,omitempty"`
	}
	var out struct {
		XMLName xml.Name `xml:"settings"`
		Proxies []proxy  `xml:"proxies>proxy"`
		Mirrors []entry  `xml:"mirrors>mirror"`
		Profile struct {
			ID      string  `xml:"id"`
			Sources []entry `xml:"repositories>repository"`
			Plugins []entry `xml:"pluginRepositories>pluginRepository"`
		} `xml:"profiles>profile"`
		Active string `xml:"activeProfiles>activeProfile"`
	}
	// Where the proxy is libraries.sh finds out.
	for _, scheme := range []string{"http", "https"} {
		out.Proxies = append(out.Proxies, proxy{"sandbox-" + scheme, true, scheme, "PROXY_HOST", "PROXY_PORT"})
	}
	out.Profile.ID, out.Active = "sandbox", "sandbox"
	for _, m := range s.Mirrors {
		url := m.URL
		if !m.Blocked {
			var err error
			if url, err = s.add(r, m.ID, m.URL); err != nil {
				return nil, err
			}
		}
		out.Mirrors = append(out.Mirrors, entry{m.ID, m.MirrorOf, url, m.Blocked})
	}
	for _, p := range s.Profiles {
		if !p.Default && !slices.Contains(s.Active, p.ID) {
			continue
		}
		for _, repo := range p.Repositories {
			url := repo.URL
			if !s.mirrored(repo.ID) {
				var err error
				if url, err = s.add(r, repo.ID, repo.URL); err != nil {
					return nil, err
				}
			}
			out.Profile.Sources = append(out.Profile.Sources, entry{ID: repo.ID, URL: url})
		}
	}
	out.Profile.Plugins = out.Profile.Sources
	text, err := xml.MarshalIndent(out, "", " ")
	if err != nil {
		return nil, fmt.Errorf("settings of Maven: %w", err)
	}
	return append(text, '\n'), nil
}

type proxy struct {
	ID       string `xml:"id"`
	Active   bool   `xml:"active"`
	Protocol string `xml:"protocol"`
	Host     string `xml:"host"`
	Port     string `xml:"port"`
}

// add notes a repository with the name and password that the settings have for it.
func (s *settings) add(r *language.Registries, id, address string) (string, error) {
	url, err := registries.Add(r, address)
	if err != nil {
		return "", fmt.Errorf("repository of Maven: %w", err)
	}
	for _, server := range s.Servers {
		if server.ID != id || server.Username == "" {
			continue
		}
		if strings.HasPrefix(server.Password, "{") {
			return "", fmt.Errorf("%w: the password for %s in Maven's settings is encrypted", registries.ErrConfiguration, id)
		}
		registries.Basic(r, url, server.Username, server.Password)
	}
	return url, nil
}
