package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/edits"
)

// lookUp returns the option of a key, or an error that says what to use instead.
func lookUp(key string) (*option, error) {
	if o, ok := optionByName[key]; ok {
		return o, nil
	}
	if reason, ok := decided[key]; ok {
		return nil, fault(key, "%s", reason)
	}
	if advice, ok := other[key]; ok {
		return nil, fault(key, "there is no such key: %s", advice)
	}
	words := slices.Concat(slices.Collect(maps.Keys(optionByName)), slices.Collect(maps.Keys(decided)), slices.Collect(maps.Keys(other)))
	slices.Sort(words)
	like := closest(key, words)
	if advice, ok := other[like]; ok {
		return nil, fault(key, "there is no such key: %s", advice)
	}
	if reason, ok := decided[like]; ok {
		return nil, fault(key, "there is no such key, and as for %s: %s", like, reason)
	}
	if like != "" {
		return nil, fault(key, "there is no such key: did you mean %s?", like)
	}
	var known []string
	for _, o := range options {
		known = append(known, o.Name)
	}
	return nil, fault(key, "there is no such key: use one of %s", strings.Join(known, ", "))
}

// closest returns the word most like s, "" when none is like it. Case, hyphens and
// underscores do not count, so the engine's own names and flags find their key.
func closest(s string, words []string) string {
	const longest = 40
	if len(s) > longest {
		return ""
	}
	s = squash(s)
	best, found := 3, "" // more differences than two make another word
	for _, w := range words {
		plain := squash(w)
		if d := edits.Distance(s, plain); d < best && d*3 <= len(plain) {
			best, found = d, w
		}
	}
	return found
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}
