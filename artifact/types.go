package artifact

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// The media types of artifacts.
const (
	PNG      = "image/png"
	JPEG     = "image/jpeg"
	SVG      = "image/svg+xml"
	PDF      = "application/pdf"
	HTML     = "text/html"
	JSON     = "application/json"
	CSV      = "text/csv"
	Text     = "text/plain"
	LaTeX    = "text/latex"
	Markdown = "text/markdown"
	// Binary is what is none of the others.
	Binary = "application/octet-stream"
)

// kinds are the types with their file endings, the usual one first.
var kinds = []struct {
	mime string
	exts []string
	is   func([]byte) bool
}{
	{PNG, []string{".png"}, begins("\x89PNG\r\n\x1a\n")},
	{JPEG, []string{".jpg", ".jpeg"}, begins("\xff\xd8\xff")},
	{SVG, []string{".svg"}, isSVG},
	{PDF, []string{".pdf"}, begins("%PDF-")},
	{HTML, []string{".html", ".htm"}, isText},
	{JSON, []string{".json"}, json.Valid},
	{CSV, []string{".csv"}, isText},
	{Text, []string{".txt", ".log"}, isText},
	{LaTeX, []string{".tex"}, isText},
	{Markdown, []string{".md"}, isText},
	{Binary, []string{".bin"}, func([]byte) bool { return true }},
}

// Types returns the media types that an artifact can have.
func Types() []string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.mime
	}
	return list
}

// Extension returns a media type's usual file ending, with its dot.
func Extension(mime string) string {
	for _, k := range kinds {
		if k.mime == mime {
			return k.exts[0]
		}
	}
	return ".bin"
}

// Verify returns the media type that content has which is said to be of a type: that
// one, or Binary when the content is none or the type is not of the list. It tells no
// more than that: text that is said to be HTML is HTML.
func Verify(mime string, data []byte) string {
	for _, k := range kinds {
		if k.mime == mime && k.is(data) {
			return mime
		}
	}
	return Binary
}

// TypeOf returns the media type of a file by its name's ending and its content, or by
// its first bytes alone where the ending says nothing.
func TypeOf(name string, data []byte) string {
	ext := strings.ToLower(path.Ext(name))
	for _, k := range kinds {
		if slices.Contains(k.exts, ext) {
			return Verify(k.mime, data)
		}
	}
	for _, mime := range []string{PNG, JPEG, PDF} {
		if Verify(mime, data) == mime {
			return mime
		}
	}
	return Binary
}

func begins(magic string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }
}

func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// svgProlog bounds what may stand before the first element: comments, a document type.
const svgProlog = 16 << 10

func isSVG(data []byte) bool {
	return isText(data) && bytes.Contains(data[:min(len(data), svgProlog)], []byte("<svg"))
}
