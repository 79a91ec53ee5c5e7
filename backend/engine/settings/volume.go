package settings

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const useVolume = "SOURCE:TARGET[:MODE], such as /srv/data:/data:ro, or a map of SOURCE to {bind: TARGET, mode: MODE}"

var (
	drivePath  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:[\\/]`) })
	volumeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`) })
)

// volumeModes are the words engines take behind a volume.
var volumeModes = strings.Fields("ro rw z Z U nocopy copy cached delegated consistent private rprivate shared rshared slave rslave noexec exec nodev dev nosuid suid")

// toVolumes decodes SOURCE:TARGET[:MODE], a target alone, or docker-py's map.
func toVolumes(v any) ([]Volume, error) {
	m, ok := v.(map[string]any)
	if !ok {
		text, err := toText(v)
		if err != nil {
			return nil, errors.New("use " + useVolume)
		}
		volume, err := parseVolume(text)
		return []Volume{volume}, err
	}
	var volumes []Volume
	for _, source := range slices.Sorted(maps.Keys(m)) {
		volume, err := volumeEntry(source, m[source])
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", shorten(source), err)
		}
		volumes = append(volumes, volume)
	}
	return volumes, nil
}

func parseVolume(text string) (Volume, error) {
	drive := ""
	if drivePath().MatchString(text) {
		drive, text = text[:2], text[2:]
	}
	parts := strings.Split(text, ":")
	switch {
	case len(parts) == 1 && drive == "":
		return Volume{Target: parts[0]}, nil
	case len(parts) == 2:
		return Volume{Source: drive + parts[0], Target: parts[1]}, nil
	case len(parts) == 3:
		return Volume{Source: drive + parts[0], Target: parts[1], Mode: parts[2]}, nil
	}
	return Volume{}, errors.New("use " + useVolume)
}

func volumeEntry(source string, v any) (Volume, error) {
	if target, err := toText(v); err == nil {
		return Volume{Source: source, Target: target}, nil
	}
	type object struct {
		Bind, Mode string
		RO         *bool
	}
	o, err := toObject[object](v, useVolume)
	if err != nil {
		return Volume{}, err
	}
	if o.RO != nil {
		if o.Mode != "" {
			return Volume{}, errors.New("give either mode or ro")
		}
		if o.Mode = "rw"; *o.RO {
			o.Mode = "ro"
		}
	}
	return Volume{Source: source, Target: o.Bind, Mode: o.Mode}, nil
}

func validVolume(v Volume) error {
	if err := target(v.Target); err != nil {
		return err
	}
	if strings.Contains(v.Target, ":") {
		return errors.New("a target with a colon needs the mounts key")
	}
	for _, m := range strings.Split(v.Mode, ",") {
		if v.Mode != "" && !slices.Contains(volumeModes, m) {
			return fmt.Errorf("mode %q: use ro or rw, and of %s", shorten(m), strings.Join(volumeModes[2:], ", "))
		}
	}
	if v.Source == "" {
		if v.Mode != "" {
			return errors.New("a mode needs a source")
		}
		return nil
	}
	rest := v.Source
	if drivePath().MatchString(rest) {
		rest = rest[2:]
	}
	if strings.Contains(rest, ":") {
		return errors.New("a source with a colon needs the mounts key")
	}
	return source(v.Source)
}

func (v Volume) readOnly() bool { return slices.Contains(strings.Split(v.Mode, ","), "ro") }

// hostPath tells a path of the host from a volume's name.
func hostPath(source string) bool {
	return strings.ContainsAny(source, `/\`) || strings.HasPrefix(source, ".")
}

// source allows a host path or a volume's name.
func source(s string) error {
	switch {
	case noControls(s) != nil:
		return errors.New("control characters are not allowed")
	case strings.HasPrefix(s, "~"):
		return errors.New("~ is not expanded: write the home folder out")
	case !hostPath(s) && !volumeName().MatchString(s):
		return errors.New("a source is a path, absolute or with a slash as in ./data, or a volume's name of letters, digits, _, . and -")
	}
	return nil
}

// absoluteSource makes a relative host path absolute; a volume's name it leaves alone.
func absoluteSource(s string) (string, error) {
	if !hostPath(s) || path.IsAbs(s) || drivePath().MatchString(s) {
		return s, nil
	}
	abs, err := filepath.Abs(s)
	if err != nil {
		return "", fmt.Errorf("source %q: no working folder to take it from: %w: use an absolute path", shorten(s), err)
	}
	return abs, nil
}

// absolute allows a clean absolute path inside, or on an engine's Linux host.
func absolute(p string) error {
	if !path.IsAbs(p) || noControls(p) != nil {
		return errors.New("use an absolute path")
	}
	return nil
}

// target allows what can be mounted upon.
func target(p string) error {
	if err := absolute(p); err != nil {
		return errors.New("use an absolute path as the target inside")
	}
	if path.Clean(p) == "/" {
		return errors.New("the root cannot be mounted upon: the sandbox's image is there")
	}
	return nil
}
