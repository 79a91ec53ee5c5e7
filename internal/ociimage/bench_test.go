package ociimage

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// BenchmarkResolve is what a sandbox waits for when its image is in the store.
func BenchmarkResolve(b *testing.B) {
	host := serve(b, nil)
	push(b, host+"/x", imageOf(b, v1.Config{}, layerOf(b, file("a", "1")), layerOf(b, file("b", "2"))))
	s := newStore(b)
	resolve(b, s, host+"/x", Options{})
	for b.Loop() {
		img, err := s.Resolve(b.Context(), host+"/x", Options{})
		if err != nil {
			b.Fatal(err)
		}
		img.Release()
	}
}
