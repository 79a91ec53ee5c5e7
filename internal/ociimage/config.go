package ociimage

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Config is what an image says about the programs that run in it. It was checked:
// no string has a NUL, no variable a newline, WorkingDir is "" or absolute and clean.
type Config struct {
	Env        []string          `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

const (
	maxEnv     = 1024      // variables
	maxStrings = 256 << 10 // bytes of environment, of arguments, of labels, each
	maxUser    = 256
	maxLabels  = 4096
)

// parseConfig reads an image's config and refuses one that no honest builder writes.
func parseConfig(raw []byte) (*v1.ConfigFile, Config, error) {
	var file v1.ConfigFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Config{}, fmt.Errorf("image config is not valid JSON (%v): %w", err, backend.ErrImageInvalid)
	}
	c := Config{
		Env:        file.Config.Env,
		User:       file.Config.User,
		Entrypoint: file.Config.Entrypoint,
		Cmd:        file.Config.Cmd,
		Labels:     file.Config.Labels,
	}
	if wd := file.Config.WorkingDir; wd != "" {
		c.WorkingDir = path.Clean(wd)
		if !path.IsAbs(wd) || len(wd) > maxName || strings.ContainsAny(wd, "\x00\n") || slices.Contains(strings.Split(wd, "/"), "..") {
			return nil, Config{}, refuse("working folder %.80q is not a plain absolute path", wd)
		}
	}
	if err := c.check(); err != nil {
		return nil, Config{}, err
	}
	for _, d := range file.RootFS.DiffIDs {
		if err := checkDigest(d); err != nil {
			return nil, Config{}, err
		}
	}
	return &file, c, nil
}

func (c Config) check() error {
	if len(c.Env) > maxEnv || total(c.Env) > maxStrings {
		return refuse("environment has more than %d variables or %d bytes", maxEnv, maxStrings)
	}
	for _, e := range c.Env {
		if key, _, ok := strings.Cut(e, "="); !ok || key == "" || strings.ContainsAny(e, "\x00\n") {
			return refuse("environment variable %.80q is not NAME=value on one line", e)
		}
	}
	if total(c.Entrypoint)+total(c.Cmd) > maxStrings {
		return refuse("command has more than %d bytes", maxStrings)
	}
	for _, a := range slices.Concat(c.Entrypoint, c.Cmd) {
		if strings.ContainsRune(a, 0) {
			return refuse("command argument %.80q has a NUL", a)
		}
	}
	if !validUser(c.User) {
		return refuse("user %.80q is not name, uid, name:group or uid:gid", c.User)
	}
	size := 0
	for k, v := range c.Labels {
		size += len(k) + len(v)
	}
	if len(c.Labels) > maxLabels || size > maxStrings {
		return refuse("there are more than %d labels or %d bytes of them", maxLabels, maxStrings)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("image config: %s: %w", fmt.Sprintf(format, args...), backend.ErrImageInvalid)
}

func total(list []string) int {
	n := len(list)
	for _, s := range list {
		n += len(s)
	}
	return n
}

func validUser(u string) bool {
	name, group, hasGroup := strings.Cut(u, ":")
	return u == "" || len(u) <= maxUser && validAccount(name) && (!hasGroup || validAccount(group))
}

func validAccount(s string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-$", r)
	}
	return s != "" && s[0] != '-' && strings.IndexFunc(s, other) < 0
}

func checkDigest(h v1.Hash) error {
	if !isDigest(h.String()) {
		return fmt.Errorf("image names content by %.80q, not by a sha256 digest: %w", h.String(), backend.ErrImageInvalid)
	}
	return nil
}

func isDigest(s string) bool {
	h, err := v1.NewHash(s)
	return err == nil && h.Algorithm == "sha256"
}
