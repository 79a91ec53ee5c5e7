//go:build linux

package guest

import (
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// maxUserFile bounds what is read of /etc/passwd and /etc/group.
const maxUserFile = 1 << 20

type user struct{ uid, gid uint32 }

// resolveUser resolves "", "user" or "user:group", each a number or a name of the
// sandbox's own /etc/passwd and /etc/group.
func (a *Agent) resolveUser(spec string) (user, error) {
	u := user{uid: a.opts.CodeUID, gid: a.opts.CodeGID}
	if spec == "" {
		return u, nil
	}
	name, group, hasGroup := strings.Cut(spec, ":")
	if id, ok := parseID(name); ok {
		u.uid = id
		if id != a.opts.CodeUID {
			u.gid = id
		}
		if fields := findEntry("/etc/passwd", 2, name); len(fields) > 3 {
			if gid, ok := parseID(fields[3]); ok {
				u.gid = gid
			}
		}
	} else {
		fields := findEntry("/etc/passwd", 0, name)
		if len(fields) < 4 {
			return u, agentproto.Errorf(agentproto.CodeNotFound, "the sandbox has no user %q", name)
		}
		uid, ok := parseID(fields[2])
		gid, ok2 := parseID(fields[3])
		if !ok || !ok2 {
			return u, agentproto.Errorf(agentproto.CodeNotFound, "the sandbox's entry for user %q has no valid ids", name)
		}
		u = user{uid: uid, gid: gid}
	}
	if !hasGroup {
		return u, nil
	}
	gid, ok := parseID(group)
	if fields := findEntry("/etc/group", 0, group); !ok && len(fields) > 2 {
		gid, ok = parseID(fields[2])
	}
	if !ok {
		return u, agentproto.Errorf(agentproto.CodeNotFound, "the sandbox has no group %q", group)
	}
	u.gid = gid
	return u, nil
}

// parseID parses a uid or gid; the largest number means "no change" to the kernel
// and is none.
func parseID(s string) (uint32, bool) {
	v, err := strconv.ParseUint(s, 10, 32)
	return uint32(v), err == nil && uint32(v) != ^uint32(0)
}

// findEntry returns the fields of the first line whose given field has that value.
func findEntry(file string, field int, value string) []string {
	text, err := readBounded(file, maxUserFile)
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Split(line, ":"); len(f) > field && f[field] == value {
			return f
		}
	}
	return nil
}
