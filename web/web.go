// Package web has the console: pages that a server of package httpapi shows in a browser. They are made from the TypeScript beside this file by
// go generate, which needs Node; the result is committed, so that a build needs none.
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:generate npm ci --ignore-scripts --no-audit --no-fund
//go:generate npm run --silent build

//go:embed dist
var dist embed.FS

// policy lets the pages load what this server sends, and nothing else. What comes from inside sandboxes is text to them, or a picture.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// types are the media types of dist's files: those that the system knows may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// assets is the directory of the files whose names change with their content.
const assets = "/assets/"

// file returns the file of dist that a path is answered with. Each page is the same document, whose script looks at the path.
func file(at string) (name string, ok bool) {
	switch {
	case at == "/" || at == "/login" || at == "/notebook" || at == "/sandboxes" || at == "/pools" || at == "/audit" || at == "/usage" || at == "/keys" || at == "/reference" || at == "/settings":
		return "dist/index.html", true
	case strings.HasPrefix(at, "/sandboxes/") && path.Dir(at) == "/sandboxes":
		return "dist/index.html", true
	case strings.HasPrefix(at, assets) && path.Clean(at) == at:
		name = "dist" + at
		i, err := fs.Stat(dist, name)
		return name, err == nil && i.Mode().IsRegular()
	}
	return "", false
}

// Has reports whether Serve has something at a URL's path. What it has is the same for everyone, and no secret.
func Has(urlPath string) bool {
	_, ok := file(urlPath)
	return ok
}

// Serve answers a request for a path that Has knows, and any other with 404.
func Serve(w http.ResponseWriter, r *http.Request) {
	name, ok := file(r.URL.Path)
	content, err := dist.ReadFile(name)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(r.URL.Path, assets) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	// A client that has disconnected misses nothing.
	_, _ = w.Write(content)
}
