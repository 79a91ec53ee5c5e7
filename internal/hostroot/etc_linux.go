package hostroot

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
)

const (
	maxEtcFile  = 8 << 20
	maxEtcFiles = 5000
	maxEtcDepth = 6
)

// etcPatterns are the only things of the host's /etc that are copied.
var etcPatterns = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "alternatives", "os-release",
	"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "pki/java", "crypto-policies",
	"fonts", "java", "java-*", "R", "python3*", "matplotlibrc", "mime.types", "protocols", "services", "terminfo",
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

func etcSources() []string {
	var paths []string
	for _, pattern := range etcPatterns {
		// The patterns are constants: a bad one is impossible.
		found, _ := filepath.Glob(filepath.Join("/etc", pattern))
		paths = append(paths, found...)
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
