package llmsandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// Bounds of a folder that libraries are installed from.
const (
	maxLocalBytes = 2 << 30
	maxLocalFiles = 10_000
)

var localLimits = transfer.Options{MaxBytes: maxLocalBytes, MaxFiles: maxLocalFiles}

// digestFolder names a folder's files by what they hold. Links below it are left out, as they
// are when it is copied.
func digestFolder(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	var files, bytes int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		n, err := io.Copy(content, io.LimitReader(f, maxLocalBytes+1-bytes))
		if files, bytes = files+1, bytes+n; err == nil && (files > maxLocalFiles || bytes > maxLocalBytes) {
			err = fmt.Errorf("%s: %w: at most %d files and %d bytes", dir, ErrTooLarge, maxLocalFiles, int64(maxLocalBytes))
		}
		fmt.Fprintf(sum, "%q %x\n", filepath.ToSlash(name), content.Sum(nil))
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: %w: there is no file in it", dir, fs.ErrNotExist)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
