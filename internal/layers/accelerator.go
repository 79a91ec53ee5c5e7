package layers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	// acceleratorDir is where an accelerator is in a sandbox that does not have it in its PATH.
	acceleratorDir = "/tmp/.llmsandbox-accelerator"
	// maxAccelerator bounds what a registry gives as one.
	maxAccelerator = 256 << 20
)

// An accelerator is what installs faster: its path or name in a sandbox, and the layer that it is of,
// "" where it is in the sandbox's PATH. The zero value is none.
type accelerator struct{ program, source string }

// accelerator brings what installs faster into the sandbox that installs: the program in the sandbox's
// PATH, a copy of this machine's, or one out of the registries, which is fetched once. An image has its
// own or none, as what runs in it is for who made it to choose.
func (q *Libraries) accelerator(ctx context.Context, s Sandbox) (accelerator, error) {
	a := q.language.Libraries.Accelerator
	if a == nil || q.options.Local != "" { // which does without registries
		return accelerator{}, nil
	}
	if there, err := inPath(ctx, s, a.Program); there || err != nil {
		return accelerator{program: a.Program}, err
	}
	if !s.Guest().Host || stay(q.layers) { // it would have to be there before the sandbox is
		return accelerator{}, nil
	}
	client, err := s.Client(ctx)
	if err != nil {
		return accelerator{}, err
	}
	source, err := q.hostAccelerator(ctx)
	if source == "" && err == nil {
		source, err = q.fetchedAccelerator(ctx, s.Guest().Arch)
	}
	if source == "" || err != nil {
		return accelerator{}, err
	}
	return accelerator{path.Join(acceleratorDir, a.Program), source}, copyIn(ctx, q.layers, client, source, acceleratorDir)
}

// hostAccelerator returns the layer with a copy of this machine's program, "" when it has none.
func (q *Libraries) hostAccelerator(ctx context.Context) (string, error) {
	a := q.language.Libraries.Accelerator
	f := hostProgram(a.Program)
	if f == nil {
		return "", nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	about := backend.LayerInfo{Language: q.language.Name, Cache: a.Program, Key: layerKey(q.language.Name, struct {
		Accelerator, Path string
		Size, Changed     int64
	}{a.Program, f.Name(), info.Size(), info.ModTime().UnixNano()})}
	return q.layers.Get(ctx, about, func(_ context.Context, dir string) error {
		to, err := os.OpenFile(filepath.Join(dir, a.Program), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, f)
		return errors.Join(err, to.Close(), os.Chmod(to.Name(), 0o755))
	})
}

// fetchedAccelerator returns the layer with the program out of the registries, "" when it could
// not be had, which costs no more than time. What is said about it is output of the installation.
func (q *Libraries) fetchedAccelerator(ctx context.Context, arch string) (string, error) {
	lang := q.language
	a := lang.Libraries.Accelerator
	about := backend.LayerInfo{Key: acceleratorKey(lang, arch), Language: lang.Name, Cache: a.Program}
	source, err := q.maker.once(ctx, about.Key, func(p backend.Progress) { q.say(p.Output) }, func(ctx context.Context, report func(backend.Progress)) (string, error) {
		q := &Libraries{
			maker: q.maker, layers: q.layers, language: lang, libraries: []string{a.Library}, options: q.options,
			spec: backend.Spec{Language: lang.Name, Progress: report},
		}
		return q.layers.Get(ctx, about, func(ctx context.Context, dir string) error {
			return q.inSandbox(ctx, job{name: about.Key, stage: stagePrepare, plan: a.Install, done: func(ctx context.Context, s Sandbox, target string) error {
				return takeOut(ctx, s, path.Join(target, "bin"), dir, layertree.Options{MaxBytes: maxAccelerator, MaxFiles: 10})
			}})
		})
	})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if source == "" {
		why := "it could not be had not long ago"
		if err != nil {
			why = err.Error()
		}
		q.say(fmt.Sprintf("installing without %s: %s", a.Program, why))
	}
	return source, nil
}

// acceleratorKey names all that an accelerator's layer depends on.
func acceleratorKey(lang *language.Language, arch string) string {
	return layerKey(lang.Name, struct{ Accelerator, Library, Arch string }{lang.Libraries.Accelerator.Program, lang.Libraries.Accelerator.Library, arch})
}

// hostProgram opens this machine's program of a name; nil if it has none that runs anywhere: a
// wrapper, which goes by its own place or name, does not.
func hostProgram(name string) *os.File {
	found, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	if found, err = filepath.EvalSymlinks(found); err != nil || filepath.Base(found) != name {
		return nil
	}
	f, err := os.Open(found)
	if err != nil {
		return nil
	}
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "\x7fELF" {
		f.Close()
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil
	}
	return f
}
