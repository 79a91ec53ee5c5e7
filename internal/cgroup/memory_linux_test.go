package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAvailableMemory: what counts is the least that is left of the machine and of all groups around this process.
func TestAvailableMemory(t *testing.T) {
	const (
		mib     = 1 << 20
		meminfo = "MemTotal: 1024000 kB\nMemFree: 1 kB\nMemAvailable: 512000 kB\n"
		v1      = "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n2 0 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		v2      = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct {
		files            map[string]string
		available, total int64 // 0: an error
	}{
		"no groups": {map[string]string{"proc/self/mountinfo": "", "proc/self/cgroup": ""}, 500 * mib, 1000 * mib},
		"version 2": {map[string]string{
			"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "314572800\n", "sys/fs/cgroup/a/memory.current": "209715200\n", "sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 104857600\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n",
		}, 200 * mib, 300 * mib},
		"version 2, more than the machine has": {map[string]string{
			"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "9223372036854771712\n", "sys/fs/cgroup/a/memory.current": "0\n", "sys/fs/cgroup/a/memory.stat": "",
		}, 500 * mib, 1000 * mib},
		"version 1, full": {map[string]string{
			"proc/self/mountinfo": v1, "proc/self/cgroup": "2:cpu:/c\n1:memory:/a\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n", "sys/fs/cgroup/memory/memory.stat": "",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "104857600\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "104857601\n", "sys/fs/cgroup/memory/a/memory.stat": "total_inactive_file 0\n",
		}, 0, 100 * mib},
		"a container's own group": {map[string]string{
			"proc/self/mountinfo": "1 0 0:1 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "proc/self/cgroup": "1:memory:/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "104857600\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "20971520\n", "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 10485760\n",
		}, 90 * mib, 100 * mib},
		"groups with enough left, which tell no more": {map[string]string{
			"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "1468006400\n", "sys/fs/cgroup/a/memory.current": "104857600\n", "sys/fs/cgroup/a/b/memory.max": "9223372036854771712\n",
		}, 500 * mib, 1000 * mib},
		"nothing of a group": {map[string]string{
			"proc/self/mountinfo": v2, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "100\n",
		}, 0, 0},
		"an old kernel": {map[string]string{"proc/meminfo": "MemTotal: 1 kB\n", "proc/self/mountinfo": "", "proc/self/cgroup": ""}, 0, 0},
		"no proc":       {map[string]string{}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(file, text string) {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/meminfo", meminfo)
			for file, text := range c.files {
				write(file, text)
			}
			groups, err := memoryGroups(root)
			var available, total int64
			if err == nil {
				available, total, err = availableMemory(root, groups)
			}
			if available != c.available || total != c.total || (err != nil) != (c.total == 0) {
				t.Errorf("%d of %d, %v, want %d of %d", available, total, err, c.available, c.total)
			}
		})
	}
	if available, total, err := AvailableMemory(); err != nil || available <= 0 || available > total {
		t.Errorf("here: %d of %d, %v, want some of it", available, total, err)
	}
}
