package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestPackageHostsOfImages opens sandboxes of an image that names where its packages come from. Its hosts may be asked for by name and where they
// are public, and what code writes to its files later opens nothing.
func TestPackageHostsOfImages(t *testing.T) {
	b, _ := imageBackend(t)
	img := testimage.Busybox(t, nil)
	for name, text := range map[string]string{
		"etc/apk/repositories":                  "http://apk.example.org/v3/main\n# http://comment.example.org/\n",
		"etc/apt/sources.list":                  "deb [trusted=yes] http://apt.example.org/debian stable main\ndeb http://2130706433/x y z\n",
		"etc/apt/sources.list.d/more.sources":   "Types: deb\nURIs: http://more.example.org/\n",
		"etc/apt/sources.list.d/not.sources.d1": "http://not.example.org/\n",
	} {
		img = withText(t, img, name, text)
	}
	asked := func(sb *llmsandbox.Sandbox, host string) string {
		t.Helper()
		res, err := sb.Shell(testContext(t), "busybox wget -q -O- http://"+host+"/; true", nil)
		if err != nil || len(res.Network) != 1 {
			t.Fatalf("%s: %v, %v, %s, want one attempt", host, err, res.Network, res.Stderr)
		}
		return res.Network[0].Refused
	}
	network := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{llmsandbox.PackageHosts}, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}
	o := llmsandbox.Options{Backend: b, Language: "bash", Image: testimage.Layout(t, map[string]v1.Image{"one": img}) + ":one", WritableRoot: true, Resettable: true, Network: network}
	sb := open(t, o)
	for host, want := range map[string]string{"apk.example.org": "special-address", "apt.example.org": "special-address", "more.example.org": "special-address", "comment.example.org": "not-allowed", "not.example.org": "not-allowed", "127.0.0.1": "not-allowed"} {
		if got := asked(sb, host); got != want {
			t.Errorf("%s is refused as %s, want %s", host, got, want)
		}
	}
	shellIn(t, sb, "echo http://evil.example.org/ >>/etc/apk/repositories", "")
	if err := sb.SetNetwork(testContext(t), network); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for host, want := range map[string]string{"apk.example.org": "special-address", "evil.example.org": "not-allowed"} {
			if got := asked(sb, host); got != want {
				t.Errorf("after a change, %s is refused as %s, want %s", host, got, want)
			}
		}
		if err := sb.Reset(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	// Without the rule the image is not asked.
	o.Network.Allow = []string{"other.example.org"}
	if got := asked(open(t, o), "apk.example.org"); got != "not-allowed" {
		t.Errorf("without the rule, refused as %s, want not-allowed", got)
	}
}

// withText adds a layer with a file.
func withText(t *testing.T, img v1.Image, name, text string) v1.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
	_, werr := io.WriteString(w, text)
	if err := errors.Join(err, werr, w.Close()); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}
