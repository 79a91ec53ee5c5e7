package hostroot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// layoutVersion changes when the same host gives another skeleton.
const layoutVersion = 3

// Prepare finds the host's toolchains and returns a root made of them. The skeleton is
// built once in cacheDir and used again until something it was made from changes. It
// may be called concurrently, by several processes.
func Prepare(cacheDir string, opts Options) (*Root, error) {
	f := newFinder(opts)
	f.findAll()
	root := f.root()
	sources := etcSources()
	root.Skeleton = filepath.Join(cacheDir, "hostroot-"+key(root, f, sources))
	if _, err := os.Lstat(root.Skeleton); err == nil {
		return root, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the prepared root: %w", err)
	}
	err := build(cacheDir, root.Skeleton, func(b *builder) {
		b.skeleton(root.Binds, f.links)
		b.scripts(f.scripts, f.python())
		b.etc(sources)
	})
	if err != nil {
		return nil, fmt.Errorf("prepare a root out of the host's toolchains: %w: check that %s is writable and has space", err, cacheDir)
	}
	return root, nil
}

// InPlace finds the host's toolchains where the host has them. Of the root that it returns there is no skeleton: files are what is read of the
// host's configuration.
func InPlace(opts Options) (root *Root, files []string) {
	opts.InPlace = true
	f := newFinder(opts)
	f.findAll()
	return f.root(), etcSources()
}

// key names all that the skeleton depends on.
func key(root *Root, f *finder, sources []string) string {
	h := sha256.New()
	fmt.Fprintln(h, layoutVersion, root.Binds, f.links) // fmt prints maps in order
	for _, dir := range topLinks {
		target, _ := os.Readlink(dir)
		fmt.Fprintln(h, dir, target)
	}
	for _, path := range append(f.scripts[:len(f.scripts):len(f.scripts)], sources...) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// build makes a directory under another name and renames it, so that no process ever
// sees half of one.
func build(cacheDir, path string, fill func(*builder)) (err error) {
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cacheDir, ".hostroot-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	b := &builder{dir: tmp}
	fill(b)
	if b.err != nil {
		return b.err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // ErrExist: another process was faster
	}
	return nil
}

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

func (b *builder) chmod(name string, mode os.FileMode) {
	if b.err == nil {
		b.try(os.Chmod(filepath.Join(b.dir, name), mode))
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

const (
	maxEtcFile  = 8 << 20
	maxEtcFiles = 5000
	maxEtcDepth = 6
)

// etcPatterns are the only things of the host's /etc that are copied.
var etcPatterns = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "alternatives", "os-release",
	"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "pki/java", "crypto-policies",
	"fonts", "java", "java-*", "mono/config", "R", "python3*", "matplotlibrc", "mime.types", "protocols", "services", "terminfo",
}

// synthetic is the part of /etc that reveals nothing of the host.
var synthetic = map[string]string{
	"passwd":        "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/tmp/home:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	"group":         "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
	"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost\n",
	"hostname":      "sandbox\n",
	"resolv.conf":   "",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
}

// etcSources are what there is of the patterns, in their order.
func etcSources() []string {
	var paths []string
	entries, _ := os.ReadDir("/etc") // none: then there is nothing to copy
	for _, pattern := range etcPatterns {
		if path := filepath.Join("/etc", pattern); !strings.Contains(pattern, "*") {
			if _, err := os.Lstat(path); err == nil {
				paths = append(paths, path)
			}
			continue
		}
		for _, e := range entries {
			if ok, _ := filepath.Match(pattern, e.Name()); ok {
				paths = append(paths, filepath.Join("/etc", e.Name()))
			}
		}
	}
	return paths
}

func (b *builder) etc(sources []string) {
	for name, text := range synthetic {
		b.write("etc/"+name, []byte(text))
	}
	left := maxEtcFiles
	for _, path := range sources {
		b.copy(path, maxEtcDepth, &left)
	}
}

// copy copies what root owns and everybody may read. Links to the mounted system
// stay links, those within /etc become what they name, others are left out.
func (b *builder) copy(path string, depth int, left *int) {
	info, err := os.Lstat(path)
	if err != nil || !ofRoot(info) || *left <= 0 || b.err != nil {
		return
	}
	*left--
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		final, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil:
		case isSystem(final):
			b.mkdir(filepath.Dir(path))
			b.symlink(final, path)
		case under(final, "/etc"):
			b.copyFile(final, path)
		}
	case info.IsDir() && depth > 0:
		entries, err := os.ReadDir(path)
		if err != nil {
			return
		}
		b.mkdir(path)
		for _, e := range entries {
			b.copy(filepath.Join(path, e.Name()), depth-1, left)
		}
	case info.Mode().IsRegular():
		b.copyFile(path, path)
	}
}

func (b *builder) copyFile(source, name string) {
	f, err := os.OpenFile(source, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // what the caller may not read is no toolchain's configuration
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !ofRoot(info) || info.Mode().Perm()&0o004 == 0 || info.Size() > maxEtcFile {
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEtcFile))
	b.try(err)
	b.write(name, data)
	// Caches compare times: with another one, Python would compile the distribution's
	// sitecustomize at every start.
	b.setTime(name, info.ModTime())
}

func ofRoot(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	// 65534: root as a user namespace without a mapping for it shows it.
	return ok && (st.Uid == 0 || st.Uid == 65534)
}
