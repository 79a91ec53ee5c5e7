//go:build linux

package files_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
)

// rootMembers are what a root file system is sent as, without what the machine decides.
func rootMembers(t *testing.T, c *agentclient.Client, all bool) (members, skipped []string) {
	t.Helper()
	var out bytes.Buffer
	res, err := c.TarRoot(t.Context(), all, &out)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(members)
			return members, res.Skipped
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeFifo && (h.Uid != os.Getuid() || h.Gid != os.Getgid()) {
			t.Errorf("%q belongs to %d:%d, want %d:%d", h.Name, h.Uid, h.Gid, os.Getuid(), os.Getgid())
		}
		members = append(members, fmt.Sprintf("%c %q %o %d %s%s", h.Typeflag, h.Name, h.Mode, h.Size, content, h.Linkname))
	}
}

func TestTarRoot(t *testing.T) {
	c, root, s := serveFiles(t)
	if err := os.WriteFile(root+"/f\ng", []byte("data"), 0o4640); err != nil {
		t.Fatal(err)
	}
	mkdir(t, root+"/d")
	if err := errors.Join(os.Chmod(root+"/d", 0o1775|os.ModeSticky), os.Symlink("../f", root+"/d/l"), unix.Mkfifo(root+"/d/fifo", 0o600), os.Chmod(root+"/f\ng", 0o4640|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	rest := []string{`2 "d/l" 777 0 ../f`, `5 "d/" 1775 0 `, `5 "sandbox/" 755 0 `, `6 "d/fifo" 0 0 `}
	written := append([]string{`0 "f\ng" 640 4 data`}, rest...)
	if got, skipped := rootMembers(t, c, false); !slices.Equal(got, written) || len(skipped) != 1 || !strings.Contains(skipped[0], "fifo") {
		t.Errorf("just written: %q, left out %q, want %q, and the FIFO left out", got, skipped, written)
	}
	s.StartLater()
	before := slices.Sorted(slices.Values(append([]string{`4 "f\ng" 640 4 `}, rest...)))
	if got, _ := rootMembers(t, c, false); !slices.Equal(got, before) {
		t.Errorf("written before: %q, want %q", got, before)
	}
	if got, _ := rootMembers(t, c, true); !slices.Equal(got, written) {
		t.Errorf("all: %q, want %q", got, written)
	}
}

// TestTarRootTellsWhatIsThere: a name that cannot be read is told, so that nobody takes it for deleted.
func TestTarRootTellsWhatIsThere(t *testing.T) {
	c, root := serve(t)
	deep := root + strings.Repeat("/d", 220)
	mkdir(t, deep)
	if err := os.WriteFile(root+"/unreadable", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, root)
	var out bytes.Buffer
	res, err := c.TarRoot(t.Context(), true, &out)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]byte{}
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		told[h.Name] = h.Typeflag
	}
	tooDeep := strings.TrimPrefix(strings.Repeat("/d", 201), "/")
	for _, name := range []string{"unreadable", tooDeep} {
		if told[name] != tar.TypeFifo || !strings.Contains(strings.Join(res.Skipped, "\n"), name) {
			t.Errorf("%.20q is told as %q, left out %q, want it told and left out", name, told[name], res.Skipped)
		}
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a\040b\134c\012`: "/a b\\c\n", `/a\`: `/a\`, `\9x`: `\9x`, `/\1012`: "/A2", "": ""} {
		if got := files.Unescape(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
