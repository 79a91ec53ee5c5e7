package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// The uid and gid of the code inside, unless an image has others for it.
const codeID = 1000

// identity says which users of the host the agent and the code are.
type identity struct {
	// separate reports whether the agent and the code have different uids.
	separate bool
	// agentHost and codeHost are the host's uids and gids.
	agentUID, agentGID, codeUID, codeGID uint32
	// insideUID and insideGID are what the code's are inside; 0 only with users.
	insideUID, insideGID uint32
	// users and groups are the first of the host's ids for the code's own user namespace, which has nsinit.RootID of them; 0: it is one user only.
	users, groups uint32
	// block is the first of the host's ids for sandboxes that are entered from this one; 0: there are none.
	block uint32
	// helpers writes the maps with newuidmap and newgidmap.
	helpers bool
}

// privileged reports whether the caller is the machine's root, and not that of a user
// namespace such as a rootless container, which has not all ids, no loop devices and
// no mounts with mapped owners.
var privileged = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 {
		return false
	}
	b, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || slices.Equal(strings.Fields(string(b)), []string{"0", "0", "4294967295"}) // none: a kernel without namespaces
})

// errNoLoop is why a caller without privileges has no disk of its own.
var errNoLoop = errors.New("only the machine's root can have loop devices")

// Root's sandboxes take their users from a range that distributions leave unused
// (above systemd's container range, below 2^31), two for each sandbox.
const (
	firstRootID = 0x70000000
	rootIDPairs = 1 << 26
)

// rootIdentity derives a sandbox's users from its id. Two sandboxes can only share
// them by a chance of one in 67 million, and would still be in different namespaces.
func rootIdentity(id string) identity {
	h := fnv.New32a()
	h.Write([]byte(id))
	base := uint32(firstRootID + 2*(h.Sum32()%rootIDPairs))
	return identity{separate: true, agentUID: base, agentGID: base, codeUID: base + 1, codeGID: base + 1, insideUID: codeID, insideGID: codeID}
}

// Blocks of ids for code that has more than one are above all that distributions give out.
const (
	firstUsers  = 0x80000000
	usersBlocks = 0x7000
)

// withUsers returns an identity whose code has a user namespace of its own, in which it is uid and gid. Two sandboxes can only share
// the host's ids by a chance of one in 28,672, and would still be in different namespaces.
func (id identity) withUsers(name string) identity {
	h := fnv.New32a()
	h.Write([]byte("users of " + name))
	id.users = firstUsers + nsinit.RootID*(h.Sum32()%usersBlocks)
	id.groups = id.users
	return id.as(id.insideUID, id.insideGID)
}

// as returns an identity with users whose code has these ids inside.
func (id identity) as(uid, gid uint32) identity {
	id.insideUID, id.insideGID = uid, gid
	id.codeUID, id.codeGID = id.users+uid, id.groups+gid
	return id
}

// toAgent is how the agent calls an id of the code.
func (id identity) toAgent(its uint32) uint32 {
	return nsinit.AgentID(id.users != 0, its)
}

// named returns the identity with other ids inside for the code; 0 leaves one as it is.
func (id identity) named(uid, gid uint32) identity {
	if uid != 0 {
		id.insideUID = uid
	}
	if gid != 0 {
		id.insideGID = gid
	}
	return id
}

// userIdentity is that of an ordinary user: with subordinate ids where the system
// gives the user some, else the user's own for everything.
func userIdentity() identity {
	own := identity{agentUID: uint32(os.Geteuid()), agentGID: uint32(os.Getegid()), insideUID: codeID, insideGID: codeID}
	own.codeUID, own.codeGID = own.agentUID, own.agentGID
	for _, helper := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(helper); err != nil {
			return own
		}
	}
	uid, err := subordinate("/etc/subuid", 1)
	if err != nil {
		return own
	}
	gid, err := subordinate("/etc/subgid", 1)
	if err != nil {
		return own
	}
	own.separate, own.helpers, own.codeUID, own.codeGID = true, true, uid, gid
	return own
}

// userIdentityWithUsers is that of an ordinary user whose code has users of its own: the user's subordinate ids.
func userIdentityWithUsers() (id identity, err error) {
	id = userIdentity()
	if !id.separate {
		return id, errors.New("newuidmap and newgidmap (package uidmap) and ids in /etc/subuid and /etc/subgid are needed for that")
	}
	id.users, err = subordinate("/etc/subuid", nsinit.RootID)
	if err == nil {
		id.groups, err = subordinate("/etc/subgid", nsinit.RootID)
	}
	return id.as(id.insideUID, id.insideGID), err
}

// subordinate returns the first id of the caller's first range with so many in a subuid or subgid file.
func subordinate(path string, least uint64) (uint32, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	names := []string{strconv.Itoa(os.Geteuid())}
	if u, err := user.LookupId(names[0]); err == nil {
		names = append(names, u.Username)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(f) != 3 || (f[0] != names[0] && f[0] != names[len(names)-1]) {
			continue
		}
		start, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 == nil && err2 == nil && start > 0 && count >= least {
			return uint32(start), nil
		}
	}
	return 0, fmt.Errorf("%s gives this user no %d ids in a row", path, least)
}

// write gives the user namespace of process pid its users.
func (id identity) write(pid int) error {
	if id.helpers {
		return errors.Join(
			runMapHelper("newuidmap", pid, id.lines(id.agentUID, id.insideUID, id.codeUID, id.users)),
			runMapHelper("newgidmap", pid, id.lines(id.agentGID, id.insideGID, id.codeGID, id.groups)))
	}
	proc := "/proc/" + strconv.Itoa(pid)
	if !id.separate {
		// Without it the kernel lets no ordinary user write gid_map.
		if err := writeProc(proc+"/setgroups", "deny"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := writeProc(proc+"/uid_map", id.lines(id.agentUID, id.insideUID, id.codeUID, id.users)); err != nil {
		return err
	}
	return writeProc(proc+"/gid_map", id.lines(id.agentGID, id.insideGID, id.codeGID, id.groups))
}

// lines are the map of the agent's user namespace.
func (id identity) lines(agent, inside, code, users uint32) string {
	if !id.separate {
		return fmt.Sprintf("%d %d 1\n", inside, code)
	}
	if users != 0 {
		return fmt.Sprintf("0 %d 1\n1 %d %d\n%d %d 1\n", agent, users+1, nsinit.RootID-1, nsinit.RootID, users)
	}
	text := fmt.Sprintf("0 %d 1\n%d %d 1\n", agent, inside, code)
	if id.block != 0 {
		text += fmt.Sprintf("%d %d %d\n", entranceIDs, id.block, 2*entrancePairs)
	}
	return text
}

func runMapHelper(program string, pid int, lines string) error {
	cmd := exec.Command(program, append([]string{strconv.Itoa(pid)}, strings.Fields(lines)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s: see that it is set-uid root and that the user's lines of /etc/subuid and /etc/subgid are right, or remove those to do without", program, err, bytes.TrimSpace(out))
	}
	return nil
}

// writeProc writes with one call, as files of /proc need it.
func writeProc(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
