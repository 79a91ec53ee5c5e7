package transfer

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// copyBuffer is the size of the pieces that content is copied in.
const copyBuffer = 256 << 10

// extractor unpacks a hostile tar stream below a folder of the host.
type extractor struct {
	folders *folders
	o       Options
	res     *Result
	buf     []byte
}

func (e *extractor) extract(r io.Reader) error {
	tr := tar.NewReader(r)
	for members := int64(0); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if members++; members > e.o.MaxFiles {
			return fmt.Errorf("%w: more than %d files and folders", ErrTooLarge, e.o.MaxFiles)
		}
		if err := e.member(tr, h); err != nil {
			return fmt.Errorf("%s: %w", quote(h.Name), err)
		}
	}
}

// member unpacks one member. What must not be followed is left out.
func (e *extractor) member(r io.Reader, h *tar.Header) error {
	names, why := memberNames(h)
	if why == "" && len(names) == 0 {
		return nil // the destination itself
	}
	if why == "" {
		var err error
		if h.Typeflag == tar.TypeDir {
			_, err = e.folders.at(names)
		} else {
			err = e.file(r, names, h)
		}
		if !errors.Is(err, errLink) {
			return err
		}
		why = err.Error()
	}
	e.res.skip(quote(h.Name) + ": " + why)
	return nil
}

// quote makes a name from the sandbox fit to be shown.
func quote(name string) string {
	const most = 4096
	if len(name) > most {
		name = "..." + name[len(name)-most:]
	}
	return strconv.Quote(name)
}

// memberNames splits a member's name, or tells why the member is left out.
func memberNames(h *tar.Header) (names []string, why string) {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeSymlink, tar.TypeLink:
		return nil, "link"
	default:
		return nil, "neither a regular file nor a folder"
	}
	if strings.HasPrefix(h.Name, "/") {
		return nil, "absolute name"
	}
	names = strings.Split(h.Name, "/")
	for _, part := range names {
		// On Windows a name may mean more: another separator, a drive, a device.
		if part == ".." || strings.IndexByte(part, 0) >= 0 ||
			filepath.Separator != '/' && part != "" && (strings.ContainsRune(part, filepath.Separator) || !filepath.IsLocal(part)) {
			return nil, "unsafe name"
		}
	}
	names = slices.DeleteFunc(names, func(part string) bool { return part == "" || part == "." })
	if len(names) == 0 && h.Typeflag == tar.TypeReg {
		return nil, "no name"
	}
	return names, ""
}

// file writes one file beside its place and then moves it there, so that what is at
// its place, a link too, is replaced and never followed.
func (e *extractor) file(r io.Reader, names []string, h *tar.Header) error {
	left := e.o.MaxBytes - e.res.Bytes
	if h.Size > left {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, e.o.MaxBytes)
	}
	last := len(names) - 1
	dir, err := e.folders.at(names[:last])
	if err != nil {
		return err
	}
	temp := ".llmsandbox-" + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{f}, onlyReader{r}, e.buf)
	if err == nil {
		err = f.Chmod(os.FileMode(safeMode(h.Mode)))
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		if err = dir.Rename(temp, names[last]); err != nil && isFolder(dir, names[last]) {
			err = errFolder
		}
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	e.res.Files++
	e.res.Bytes += n
	return nil
}

func isFolder(dir *os.Root, name string) bool {
	st, err := dir.Lstat(name)
	return err == nil && st.IsDir()
}

// onlyReader and onlyWriter hide what would make io.CopyBuffer leave its buffer aside.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }
