package baseline

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const someMounts = `/dev/loop0 /proc ext4 rw,nosuid 0 0
none / tmpfs ro,nosuid,size=4096k 0 0
none /proc proc rw,nosuid 0 0
none /proc/sys proc ro 0 0
devtmpfs /proc/keys devtmpfs rw 0 0
none /dev/pts devpts rw,mode=620 0 0
/dev/loop0 /sandbox ext4 rw,relatime 0 0
/dev/vda /etc ext4 ro,errors=remount-rw 0 0
       key      shmid perms                  size  cpid
`

func TestMounts(t *testing.T) {
	var paths, keep []string
	for _, m := range mounts(someMounts) {
		paths = append(paths, m.path)
		if !m.keepsNothing() {
			keep = append(keep, m.path)
		}
	}
	if want := []string{"/", "/dev/pts", "/etc", "/proc", "/proc/keys", "/proc/sys", "/sandbox"}; !slices.Equal(paths, want) {
		t.Errorf("mounts at %q, want %q", paths, want)
	}
	if want := []string{"/sandbox"}; !slices.Equal(keep, want) {
		t.Errorf("what is written stays in %q, want %q", keep, want)
	}
}

func TestAround(t *testing.T) {
	all := mounts("a / a ro\nb /x b rw\nc /x/y c ro\nd /x/y/z/log d rw\ne /xy e rw\n")
	for i, want := range []string{"", "/", "/x", "/x/y", "/"} {
		if got := around(all, all[i]).path; got != want {
			t.Errorf("%s is in %q, want %q", all[i].path, got, want)
		}
	}
}

func FuzzMounts(f *testing.F) {
	f.Add(someMounts)
	f.Add("a / b rw\na / b ro\n")
	f.Add("a b\x00 c rw,rw d\n / / / /")
	f.Fuzz(func(t *testing.T, lines string) {
		all := mounts(lines)
		if len(all) > strings.Count(lines, "\n")+1 {
			t.Errorf("%d mounts in %q, want len(all) <= strings.Count(lines, \"\\n\")+1", len(all), lines)
		}
		for i, m := range all {
			if !path.IsAbs(m.path) || i > 0 && all[i-1].path >= m.path {
				t.Errorf("mount %q is not absolute, not in order or there twice", m.path)
			}
		}
	})
}
