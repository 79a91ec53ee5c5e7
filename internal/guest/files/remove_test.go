//go:build linux

package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

var all = agentclient.RemoveOptions{Recursive: true}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveDenied(t *testing.T) {
	c, root := serve(t)
	asOrdinaryUser(t, root)
	mkdir(t, root+"/sandbox/closed/folder/sub")
	os.WriteFile(root+"/sandbox/closed/folder/f", nil, 0o644)
	os.WriteFile(root+"/sandbox/closed/f", nil, 0o644)
	os.Chmod(root+"/sandbox/closed", 0o555)
	t.Cleanup(func() { os.Chmod(root+"/sandbox/closed", 0o755) })
	for _, name := range []string{"closed/folder", "closed/f"} {
		if err := c.Remove(t.Context(), name, all); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want fs.ErrPermission", name, err)
		}
	}
	if err := c.Remove(t.Context(), "closed/none", all); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(root + "/sandbox/closed/folder/f"); err != nil {
		t.Errorf("a directory that cannot be removed was emptied: %v", err)
	}
	// The directory itself can go, once its owner may write to it again.
	if err := c.Remove(t.Context(), "closed", all); err != nil {
		t.Error(err)
	}
}

// TestRemoveClosedDirectories has directories of the caller's own that allow nothing, deeper
// than a removal holds open.
func TestRemoveClosedDirs(t *testing.T) {
	c, root := serve(t)
	asOrdinaryUser(t, root)
	deep := root + "/sandbox/top" + strings.Repeat("/d", 80)
	mkdir(t, deep)
	for dir := deep; !strings.HasSuffix(dir, "sandbox"); dir = dir[:strings.LastIndexByte(dir, '/')] {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(t.Context(), "top", all); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(root + "/sandbox/top"); !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// TestRemoveAnothersDirectory has a directory of another user below those that a removal
// holds open: it can neither be emptied nor moved up, and the error says so.
func TestRemoveAnothersDir(t *testing.T) {
	c, root := serve(t)
	if os.Getuid() != 0 {
		t.Skip("making another user's directory needs root")
	}
	for _, depth := range []int{1, 31, 32, 33, 40} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			theirs := root + "/sandbox/top" + strings.Repeat("/d", depth)
			mkdir(t, theirs)
			os.WriteFile(theirs+"/f", nil, 0o644)
			asOrdinaryUser(t, root)
			own := root + "/sandbox/top"
			for strings.HasPrefix(theirs, own) && own != theirs {
				os.Chown(own, nobody, nobody)
				own += "/d"
			}
			if err := c.Remove(t.Context(), "top", all); codeOf(err) != agentproto.CodePermission {
				t.Errorf("%v, want codeOf(err) = CodePermission", err)
			}
			if err := c.Remove(t.Context(), "top", agentclient.RemoveOptions{}); codeOf(err) != agentproto.CodeNotEmpty {
				t.Errorf("%v, want codeOf(err) = CodeNotEmpty", err)
			}
		})
		os.RemoveAll(root + "/sandbox/top")
	}
}

func TestRemoveKeepsWhatLinksLeadTo(t *testing.T) {
	c, root := serve(t)
	outside := t.TempDir()
	os.WriteFile(outside+"/canary", nil, 0o644)
	mkdir(t, root+"/sandbox/d")
	os.Symlink(outside, root+"/sandbox/d/link")
	os.Symlink(outside, root+"/sandbox/link")
	unix.Mkfifo(root+"/sandbox/d/fifo", 0o600)
	for _, name := range []string{"d", "link/"} {
		if err := c.Remove(t.Context(), name, all); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(outside + "/canary"); err != nil {
		t.Error(err)
	}
}
