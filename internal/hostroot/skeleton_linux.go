package hostroot

import (
	"os"
	"path/filepath"
	"time"
)

// topLinks are links into /usr where /usr is merged, directories elsewhere.
var topLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

var mountPoints = []string{"proc", "dev", "tmp", "sandbox", "sys", "run", "var", "home", "etc", "usr", "opt"}

// A builder writes below dir and remembers its first error.
type builder struct {
	dir string
	err error
}

func (b *builder) skeleton(binds []Bind, links map[string]string) {
	for _, name := range mountPoints {
		b.mkdir(name)
	}
	b.symlink("../tmp", "var/tmp")
	for _, top := range topLinks {
		if target, err := os.Readlink(top); err == nil {
			b.symlink(target, top)
		}
	}
	for _, bind := range binds {
		b.mkdir(bind.Target)
	}
	for link, target := range links {
		b.mkdir(filepath.Dir(link))
		b.symlink(target, link)
	}
}

// mkdir makes a directory and its parents, each open to everybody whatever the umask.
func (b *builder) mkdir(name string) {
	path := filepath.Join(b.dir, name)
	if b.err != nil || path == b.dir {
		return
	}
	if _, err := os.Lstat(path); err == nil {
		return
	}
	b.mkdir(filepath.Dir(filepath.Join("/", name)))
	b.try(os.Mkdir(path, 0o755))
	b.try(os.Chmod(path, 0o755))
}

func (b *builder) write(name string, data []byte) {
	b.mkdir(filepath.Dir(name))
	path := filepath.Join(b.dir, name)
	if b.err == nil {
		b.try(os.WriteFile(path, data, 0o644))
		b.try(os.Chmod(path, 0o644))
	}
}

func (b *builder) setTime(name string, t time.Time) {
	if b.err == nil {
		b.try(os.Chtimes(filepath.Join(b.dir, name), t, t))
	}
}

func (b *builder) symlink(target, name string) {
	if b.err == nil {
		b.try(os.Symlink(target, filepath.Join(b.dir, name)))
	}
}

func (b *builder) try(err error) {
	if b.err == nil {
		b.err = err
	}
}
