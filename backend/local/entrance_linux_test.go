package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// TestOpenForOther opens mounts in a mount namespace of its own, where those of many layers must be mounted for a moment.
func TestOpenForOther(t *testing.T) {
	if !privileged() {
		t.Skip("only root opens mounts for an agent")
	}
	dir := t.TempDir()
	err := inOwnMounts(func() error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("what is mounted there is here: %v, %v, want nothing", entries, err)
	}

	const layers = 60
	union := nsinit.Step{Op: nsinit.OpUnion, Path: "/"}
	for i := range layers {
		lower := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(lower, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lower, fmt.Sprint("f", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		union.Options = append(union.Options, lower)
	}
	steps := []nsinit.Step{
		union,
		{Op: nsinit.OpBind, Source: dir, Path: "/a"},
		{Op: nsinit.OpBind, Source: dir + "/none", Path: "/b", Optional: true},
		{Op: nsinit.OpBind, Source: "/dev/null", Path: "/dev/null"},
		{Op: nsinit.OpMkdir, Path: "/c"},
	}
	files, _, err := openForOther(steps, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{layers, layers} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", files[i].Fd()))
		if err != nil || len(entries) != want {
			t.Errorf("mount %d has %d entries, %v, want %d", i, len(entries), err, want)
		}
		files[i].Close()
	}
	var ops []nsinit.Op
	for _, s := range steps {
		ops = append(ops, s.Op)
	}
	if want := []nsinit.Op{nsinit.OpReceived, nsinit.OpReceived, nsinit.OpBind, nsinit.OpBind, nsinit.OpMkdir}; len(files) != 2 || !slices.Equal(ops, want) || steps[0].FD != 7 || steps[1].FD != 8 {
		t.Errorf("%d files, %+v, want steps %v with the descriptors 7 and 8", len(files), steps, want)
	}
	if _, _, err := openForOther([]nsinit.Step{{Op: nsinit.OpBind, Source: dir + "/none", Path: "/b"}}, 0); err == nil {
		t.Error("what is not there is opened")
	}
}

// TestEntranceUsers gives each sandbox users of its own, in the parent's terms.
func TestEntranceUsers(t *testing.T) {
	e := &entrance{users: rootIdentity("sb-1").withBlock("sb-1"), used: map[uint32]bool{}}
	first, last := e.users.block, e.users.block+2*entrancePairs-1
	if first < firstRootID || uint64(last) >= firstRootID+2*rootIDPairs {
		t.Errorf("the block is %d to %d, want it among root's ids", first, last)
	}
	seen := map[uint32]bool{}
	var one identity
	for range entrancePairs {
		id, err := e.take()
		if err != nil {
			t.Fatal(err)
		}
		for _, uid := range []uint32{id.agentUID, id.codeUID} {
			if seen[uid] || uid < first || uid > last {
				t.Fatalf("uid %d is taken again, or not of the block", uid)
			}
			seen[uid] = true
		}
		one = id
	}
	if id, err := e.take(); err == nil {
		t.Errorf("one too many has %+v", id)
	}
	e.release(one)
	again, err := e.take()
	if err != nil || again != one {
		t.Errorf("%+v, %v, want %+v, which was given back", again, err, one)
	}
	uids, gids := e.maps(one)
	inside := one.agentUID - first + entranceIDs
	if want := []nsinit.IDs{{Inside: codeID, Outside: inside + 1}, {Inside: 0, Outside: inside}}; !slices.Equal(uids, want) || !slices.Equal(gids, want) {
		t.Errorf("maps %v, %v, want %v", uids, gids, want)
	}

	shared := identity{separate: true, helpers: true, agentUID: 1001, codeUID: 100000, insideUID: codeID, agentGID: 1001, codeGID: 100000, insideGID: codeID}
	e = &entrance{users: shared.withBlock("sb-1")}
	if id, err := e.take(); err != nil || id != shared {
		t.Errorf("an ordinary user's: %+v, %v, want those of the parent", id, err)
	}
	if uids, _ := e.maps(shared); !slices.Equal(uids, []nsinit.IDs{{Inside: codeID, Outside: codeID}, {}}) {
		t.Errorf("maps %v, want the same ids", uids)
	}
	alone := identity{agentUID: 1001, codeUID: 1001, insideUID: codeID, agentGID: 1001, codeGID: 1001, insideGID: codeID}
	e = &entrance{users: alone.withBlock("sb-1")}
	if uids, _ := e.maps(alone); !slices.Equal(uids, []nsinit.IDs{{Inside: codeID, Outside: codeID}}) {
		t.Errorf("maps %v, want the one id", uids)
	}
}
