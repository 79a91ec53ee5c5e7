package settings

import (
	"errors"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// cutTmpfs cuts TARGET[:OPTIONS].
func cutTmpfs(text string) (string, string, error) {
	name, options, _ := strings.Cut(text, ":")
	return name, options, nil
}

func validTmpfs(name, options string) error {
	if err := target(name); err != nil {
		return err
	}
	if options == "" {
		return nil
	}
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		if word(key) != nil || noControls(option) != nil {
			return errors.New("options: use NAME or NAME=VALUE with commas between, such as size=64m,mode=1777")
		}
		if _, err := bytesize.Parse(value); key == "size" && err != nil && !strings.HasSuffix(value, "%") {
			return errors.New("option size: use bytes or a number with k, m or g behind it, such as size=64m")
		}
	}
	return nil
}

// opposite words of mount options take each other's place.
var opposite = map[string]string{
	"exec": "noexec", "suid": "nosuid", "dev": "nodev", "rw": "ro", "noexec": "exec", "nosuid": "suid", "nodev": "dev", "ro": "rw",
}

// overlaid returns the options base with those of add laid over them.
func overlaid(base, add string) string {
	if base == "" || add == "" {
		return base + add
	}
	named := map[string]bool{}
	for option := range strings.SplitSeq(add, ",") {
		key, _, _ := strings.Cut(option, "=")
		named[key], named[opposite[key]] = true, true
	}
	var kept []string
	for option := range strings.SplitSeq(base, ",") {
		if key, _, _ := strings.Cut(option, "="); !named[key] {
			kept = append(kept, option)
		}
	}
	return strings.Join(append(kept, add), ",")
}

// tmpfsOption returns the value of an option, "" when it is not there.
func tmpfsOption(options, key string) string {
	found := ""
	for option := range strings.SplitSeq(options, ",") {
		if k, value, _ := strings.Cut(option, "="); k == key {
			found = value
		}
	}
	return found
}
