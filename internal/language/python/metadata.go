package python

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Metadata is what a script says about itself in the comment that PEP 723 defines.
type Metadata struct {
	Libraries []string `toml:"dependencies"`
	Requires  string   `toml:"requires-python"`
}

const (
	maxMetadata     = 64 << 10
	maxRequirements = 256
)

var errMetadata = errors.New("invalid script metadata")

// ScriptMetadata reads the metadata of a script; nil if it has none.
func ScriptMetadata(code string) (*Metadata, error) {
	block, found, err := metadataBlock(code)
	if err != nil || !found {
		return nil, err
	}
	var m Metadata
	if _, err := toml.Decode(block, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errMetadata, err)
	}
	if len(m.Libraries) > maxRequirements {
		return nil, fmt.Errorf("%w: %d dependencies: use at most %d", errMetadata, len(m.Libraries), maxRequirements)
	}
	for i, l := range m.Libraries {
		if strings.Contains(l, ";") {
			return nil, fmt.Errorf("%w: %q: %w: markers are not supported", errMetadata, l, language.ErrInvalidLibrary)
		}
		m.Libraries[i] = strings.Join(strings.Fields(l), "")
	}
	return &m, nil
}

// metadataBlock returns the text of the block "script". Like the reference implementation, it
// ends a block at the last closing line of the comment, and ignores a block without one.
func metadataBlock(code string) (block string, found bool, err error) {
	lines := strings.Split(strings.ReplaceAll(code, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != "# /// script" {
			continue
		}
		end, at := 0, i+1
		for ; at < len(lines) && (lines[at] == "#" || strings.HasPrefix(lines[at], "# ")); at++ {
			if lines[at] == "# ///" {
				end = at
			}
		}
		if end == 0 {
			i = at - 1
			continue
		}
		if found {
			return "", false, fmt.Errorf("%w: there are two blocks named script", errMetadata)
		}
		var text strings.Builder
		for _, line := range lines[i+1 : end] {
			text.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ") + "\n")
		}
		if text.Len() > maxMetadata {
			return "", false, fmt.Errorf("%w: it has more than %d bytes", errMetadata, maxMetadata)
		}
		block, found, i = text.String(), true, at-1
	}
	return block, found, nil
}

var versionClause = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(===?|[~<>!]=|<|>)\s*([0-9]+(?:\.[0-9]+){0,3})(\.\*)?$`)
})

// Accepts reports whether a version of Python, such as 3.11.7, is what the metadata requires.
func (m *Metadata) Accepts(version string) (bool, error) {
	have, err := numbers(version)
	if err != nil {
		return false, err
	}
	for clause := range strings.SplitSeq(m.Requires, ",") {
		if clause = strings.TrimSpace(clause); clause == "" {
			continue
		}
		match := versionClause().FindStringSubmatch(clause)
		if match == nil || match[3] != "" && match[1] != "==" && match[1] != "!=" || match[1] == "~=" && !strings.Contains(match[2], ".") {
			return false, fmt.Errorf("%w: requires-python %q: use clauses such as >=3.11,<4", errMetadata, m.Requires)
		}
		want, err := numbers(match[2])
		if err != nil {
			return false, err
		}
		if !holds(match[1], have, want, match[3] != "") {
			return false, nil
		}
	}
	return true, nil
}

func holds(operator string, have, want []int, prefix bool) bool {
	order := compareVersions(have, want)
	if prefix {
		order = compareVersions(have[:min(len(have), len(want))], want)
	}
	switch operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case "<":
		return order < 0
	case "!=":
		return order != 0
	case "~=":
		n := len(want) - 1
		return order >= 0 && compareVersions(have[:min(len(have), n)], want[:n]) == 0
	}
	return order == 0
}

func numbers(version string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: version %q", errMetadata, version)
		}
		list = append(list, n)
	}
	return list, nil
}

// compareVersions takes what a version lacks for zeros.
func compareVersions(a, b []int) int {
	for i := range max(len(a), len(b)) {
		var x, y int
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x - y
		}
	}
	return 0
}
