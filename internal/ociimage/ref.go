package ociimage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/llmsandbox/llmsandbox/backend"
)

type refKind int

const (
	kindRegistry refKind = iota
	kindLayout
	kindArchive
	kindID // an image that is in the store, by its id
)

// What a reference may start with to say what it is.
const (
	prefixRegistry = "docker://"
	prefixLayout   = "oci:"
	prefixArchive  = "docker-archive:"
)

// A reference is what an image's name means, before anything is fetched.
type reference struct {
	kind refKind
	name string         // in full; parses to the same reference again
	reg  name.Reference // of kindRegistry
	path string         // of kindLayout and kindArchive, absolute
	tag  string         // of those: which of several images
	hex  string         // of kindID
}

func badRef(ref, format string, args ...any) error {
	return fmt.Errorf("image %q: %s: %w", ref, fmt.Sprintf(format, args...), backend.ErrImageNotFound)
}

// parseRef reports what ref means by its prefix, else by what is there.
func parseRef(ref string) (reference, error) {
	switch {
	case ref == "":
		return reference{}, badRef(ref, "the name is empty")
	case len(ref) > maxName || strings.ContainsAny(ref, "\x00\n"):
		return reference{}, badRef(ref[:min(len(ref), 80)], "the name is too long or has a control character")
	case strings.HasPrefix(ref, prefixRegistry):
		return parseRegistry(ref, ref[len(prefixRegistry):])
	case strings.HasPrefix(ref, prefixLayout):
		return parsePath(ref, ref[len(prefixLayout):], kindLayout)
	case strings.HasPrefix(ref, prefixArchive):
		return parsePath(ref, ref[len(prefixArchive):], kindArchive)
	case isDigest(ref):
		return reference{kind: kindID, name: ref, hex: hexOf(ref)}, nil
	}
	kind, found := localKind(ref)
	if looksLikePath(ref) {
		if !found {
			return reference{}, badRef(ref, "it is neither the folder of an OCI layout nor an image tar; a folder's image is named folder:tag")
		}
		return parsePath(ref, ref, kind)
	}
	if found {
		if _, err := name.ParseReference(ref); err == nil {
			return reference{}, badRef(ref, "it may be the file here or a registry's image: write ./%s or %s%s", ref, prefixRegistry, ref)
		}
		return parsePath(ref, ref, kind)
	}
	return parseRegistry(ref, ref)
}

// looksLikePath reports whether ref can only be meant as a path.
func looksLikePath(ref string) bool {
	if filepath.IsAbs(ref) || ref == "." || ref == ".." || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") {
		return true
	}
	return slices.ContainsFunc([]string{".tar", ".tar.gz", ".tgz", ".tar.zst"}, func(end string) bool { return strings.HasSuffix(ref, end) })
}

// splitTag cuts ":tag" off a path unless the path with it exists.
func splitTag(p string) (path, tag string) {
	if _, err := os.Lstat(p); err == nil {
		return p, ""
	}
	if i := strings.LastIndexByte(p, ':'); i > strings.LastIndexByte(p, '/') && i > 0 {
		if _, err := os.Lstat(p[:i]); err == nil {
			return p[:i], p[i+1:]
		}
		// The tag of an archive may itself be a reference with slashes and colons.
	}
	for i := 0; i < len(p); i++ {
		if p[i] != ':' || i == 0 {
			continue
		}
		if info, err := os.Stat(p[:i]); err == nil && info.Mode().IsRegular() {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

// localKind reports whether ref, with or without a tag, is an image on the disk.
func localKind(ref string) (refKind, bool) {
	p, _ := splitTag(ref)
	info, err := os.Stat(p)
	if err != nil {
		return 0, false
	}
	if info.IsDir() {
		_, err := os.Stat(filepath.Join(p, "oci-layout"))
		return kindLayout, err == nil
	}
	return kindArchive, info.Mode().IsRegular() && isTar(p)
}

// isTar reports whether the file begins like a tar or a compressed file.
func isTar(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 263)
	n, _ := io.ReadFull(f, head) // a short file is judged by what it has
	head = head[:n]
	return packedWith(head) != nil || len(head) == 263 && string(head[257:262]) == "ustar"
}

func parseRegistry(ref, s string) (reference, error) {
	r, err := name.ParseReference(s)
	if err != nil {
		return reference{}, badRef(ref, "it is no folder or file here, and no valid registry reference (%v)", err)
	}
	return reference{kind: kindRegistry, name: r.Name(), reg: r}, nil
}

func parsePath(ref, s string, kind refKind) (reference, error) {
	p, tag := splitTag(s)
	info, err := os.Stat(p)
	if err != nil {
		return reference{}, badRef(ref, "%v", errors.Unwrap(pathError(err)))
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return reference{}, badRef(ref, "%v", err)
	}
	r := reference{kind: kind, path: abs, tag: tag}
	prefix := prefixLayout
	switch {
	case kind == kindLayout && !info.IsDir():
		return reference{}, badRef(ref, "it is not a folder; for a `docker save` tar write %s%s", prefixArchive, s)
	case kind == kindArchive && !info.Mode().IsRegular():
		return reference{}, badRef(ref, "it is not a file; for the folder of an OCI layout write %s%s", prefixLayout, s)
	case kind == kindArchive:
		prefix = prefixArchive
	}
	r.name = prefix + abs
	if tag != "" {
		r.name += ":" + tag
	}
	return r, nil
}

// pathError makes sure that unwrapping err gives the reason without the path.
func pathError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe
	}
	return &fs.PathError{Err: err}
}
