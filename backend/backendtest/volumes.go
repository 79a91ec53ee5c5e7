package backendtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// volumes has files stay in volumes, which sandboxes share.
func (s *suite) volumes(t *testing.T) {
	ctx, b := testContext(t), s.Backend
	name := "v-" + strings.ToLower(rand.Text())
	at := []llmsandbox.VolumeMount{{Name: name, Target: "/sandbox/kept"}}
	_, keeps := b.(backend.Volumes)
	if why, lacks := s.Lacks[Volumes]; lacks || !keeps {
		t.Logf("no volumes: %s", why)
		_, cerr := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: name})
		_, lerr := llmsandbox.ListVolumes(ctx, b)
		_, xerr := llmsandbox.CopyToVolume(ctx, b, t.TempDir(), name, "/")
		o := s.options(llmsandbox.Options{Volumes: at})
		sb, oerr := llmsandbox.Open(ctx, &o)
		if oerr == nil {
			t.Errorf("it opened, want an error (close: %v)", sb.Close())
		}
		for call, err := range map[string]error{"create": cerr, "list": lerr, "copy": xerr, "remove": llmsandbox.RemoveVolume(ctx, b, name, true), "open": oerr} {
			if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "copy files") {
				t.Errorf("%s: %v, want llmsandbox.ErrUnsupported with a remedy", call, err)
			}
		}
		return
	}
	if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: name, Labels: map[string]string{"of": "test"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := llmsandbox.RemoveVolume(testContext(t), b, name, true); err != nil && !errors.Is(err, llmsandbox.ErrVolumeNotFound) {
			t.Error(err)
		}
	})
	list, err := llmsandbox.ListVolumes(ctx, b)
	if !slices.ContainsFunc(list, func(v llmsandbox.Volume) bool { return v.Name == name && v.Labels["of"] == "test" }) {
		t.Errorf("the list is %+v, %v, want the volume with its label", list, err)
	}
	first := s.open(t, llmsandbox.Options{Volumes: at, Resettable: true})
	second := s.open(t, llmsandbox.Options{Volumes: []llmsandbox.VolumeMount{{Name: name, Target: "/kept", ReadOnly: true}}})
	shells(t, first, "echo x > gone; echo one > kept/file; mkdir kept/dir; echo deep > kept/dir/file; chmod 700 kept; ln -s /etc kept/link; cat kept/file", "one\n")
	shells(t, second, "cat /kept/file; (echo x > /kept/new) 2>/dev/null || echo refused", "one\nrefused\n")
	switch err := first.Reset(ctx); {
	case errors.Is(err, llmsandbox.ErrUnsupported): // the tests of Reset say where that may be
		t.Log(err)
	case err != nil:
		t.Errorf("reset: %v", err)
	default:
		shells(t, first, "ls gone 2>/dev/null || echo gone", "gone\n")
	}
	shells(t, first, "cat kept/dir/file", "deep\n")
	if err := llmsandbox.RemoveVolume(ctx, b, name, false); !errors.Is(err, llmsandbox.ErrVolumeInUse) || !strings.Contains(err.Error(), first.ID()) || !strings.Contains(err.Error(), second.ID()) {
		t.Errorf("remove while it is in use: %v, want llmsandbox.ErrVolumeInUse with both ids", err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}

	// Files go in and out without a sandbox of the caller.
	from, to := filepath.Join(t.TempDir(), "from"), t.TempDir()
	if err := errors.Join(os.Mkdir(from, 0o755), os.WriteFile(filepath.Join(from, "in"), []byte("copied\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if r, err := llmsandbox.CopyToVolume(ctx, b, from, name, "/new"); err != nil || r.Files != 1 {
		t.Errorf("copy in: %+v, %v", r, err)
	}
	r, err := llmsandbox.CopyFromVolume(ctx, b, name, "/", to)
	if err != nil || r.Files != 3 || len(r.Skipped) != 1 {
		t.Errorf("copy out: %+v, %v, want three files without the link", r, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, name, "new", "in")); err != nil || string(text) != "copied\n" {
		t.Errorf("what was copied in comes out as %q, %v", text, err)
	}
	var archive bytes.Buffer
	if r, err := llmsandbox.TarFromVolume(ctx, b, name, "dir", "", &archive); err != nil || r.Files != 1 {
		t.Errorf("archive: %+v, %v", r, err)
	}
	if r, err := llmsandbox.TarToVolume(ctx, b, &archive, name, "again"); err != nil || r.Files != 1 {
		t.Errorf("unpack: %+v, %v", r, err)
	}
	for _, path := range []string{"../x", "a/../../x"} {
		_, ierr := llmsandbox.CopyToVolume(ctx, b, from, name, path)
		_, oerr := llmsandbox.CopyFromVolume(ctx, b, name, path, to)
		if !errors.Is(ierr, llmsandbox.ErrUnsafePath) || !errors.Is(oerr, llmsandbox.ErrUnsafePath) {
			t.Errorf("%s: %v and %v, want llmsandbox.ErrUnsafePath", path, ierr, oerr)
		}
	}
	third := s.open(t, llmsandbox.Options{Volumes: at})
	shells(t, third, "cat kept/again/dir/file kept/new/in; echo x >> kept/new/in; cat kept/new/in", "deep\ncopied\ncopied\nx\n")
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if err := llmsandbox.RemoveVolume(ctx, b, name, false); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := llmsandbox.CopyToVolume(ctx, b, from, name, "/"); !errors.Is(err, llmsandbox.ErrVolumeNotFound) {
		t.Errorf("copy into what is gone: %v, want llmsandbox.ErrVolumeNotFound", err)
	}
	for _, target := range []string{"/sandbox", "/etc", "relative", "/a/../b"} {
		o := s.options(llmsandbox.Options{Volumes: []llmsandbox.VolumeMount{{Name: name, Target: target}}})
		if sb, err := llmsandbox.Open(ctx, &o); err == nil {
			t.Errorf("at %s: it opened, want an error (close: %v)", target, sb.Close())
		} else if !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("at %s: %v, want llmsandbox.ErrInvalid", target, err)
		}
	}
}
