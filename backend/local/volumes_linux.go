package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// A volume is a directory below one that outlasts a restart of the machine. Code only ever sees the directory volumeData in it.
const (
	volumeData = "data"
	volumeInfo = "info" // a backend.Volume
	volumeLock = "lock" // shared by those who have it in a sandbox

	newVolume  = ".new-"  // begins the name of one that is being made,
	deadVolume = ".dead-" // and of one that is being removed
)

// Root's volumes belong to users of the host that nothing else has: code's user to the first, and its other users, where it has
// some, to those behind it. They are above those of sandboxes and below the blocks of ids.
const firstVolumeID = firstRootID + 2*rootIDPairs

// maxVolumeInfo bounds what is read about a volume.
const maxVolumeInfo = 1 << 20

var _ backend.Volumes = (*Backend)(nil)

// errVolumesInPlace is why a sandbox without namespaces has no volumes.
var errVolumesInPlace = fmt.Errorf("volumes: %w: sandboxes of the isolation process have no mounts: use the isolation namespace, or copy files in and out", backend.ErrUnsupported)

// volumesDir is where volumes are, which need not exist.
func (b *Backend) volumesDir() (string, error) {
	if b.inPlace() {
		return "", errVolumesInPlace
	}
	if err := b.checkIsolation(); err != nil {
		return "", err
	}
	return b.volumesPath()
}

// volumesPath is in the directory for what outlasts a restart of the machine, unless the backend has one of its own.
func (b *Backend) volumesPath() (string, error) {
	state, err := b.options.StateDir, error(nil)
	if state == "" {
		state, err = statedir.Lasting()
	}
	if err == nil {
		state, err = filepath.Abs(state)
	}
	if err != nil {
		return "", fmt.Errorf("volumes: %w", err)
	}
	return filepath.Join(state, "volumes"), nil
}

// CreateVolume implements [backend.Volumes].
func (b *Backend) CreateVolume(ctx context.Context, v backend.Volume) (backend.Volume, error) {
	dir, err := b.volumesDir()
	if err != nil {
		return v, err
	}
	if err := hostmount.CheckVolumeName(v.Name); err != nil {
		return v, err
	}
	switch {
	case v.Size < 0:
		return v, errclass.Errorf(backend.ErrInvalid, "volume %s: its size is negative", v.Name)
	case v.Size > 0:
		return v, fmt.Errorf("volume %s: size: %w: %s: leave it out", v.Name, backend.ErrNotEnforced, whyNoVolumeSize)
	}
	if err := layerstore.MakePrivate(dir); err != nil {
		return v, inStateDir("make the folder of volumes", err)
	}
	v.Created = time.Now().Round(0)
	made, err := os.MkdirTemp(dir, newVolume)
	if err != nil {
		return v, inStateDir("make the volume", err)
	}
	if err = b.fillVolume(ctx, made, v); err == nil {
		// Where there is one, it is not empty, and so is not replaced.
		err = os.Rename(made, filepath.Join(dir, v.Name))
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		err = errclass.Errorf(backend.ErrVolumeExists, "there is a volume %s already: choose another name, or remove it", v.Name)
	}
	if err != nil {
		return v, errors.Join(err, b.destroyVolume(context.WithoutCancel(ctx), made))
	}
	return v, nil
}

// fillVolume makes an empty volume of a directory.
func (b *Backend) fillVolume(ctx context.Context, dir string, v backend.Volume) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxVolumeInfo {
		return errclass.Errorf(backend.ErrInvalid, "volume %s: its labels have more than %d bytes", v.Name, maxVolumeInfo)
	}
	data := filepath.Join(dir, volumeData)
	err = errors.Join(os.Mkdir(data, 0o755), os.WriteFile(filepath.Join(dir, volumeInfo), text, 0o600), os.WriteFile(filepath.Join(dir, volumeLock), nil, 0o600))
	if err == nil && privileged() {
		err = os.Lchown(data, firstVolumeID, firstVolumeID)
	}
	if err != nil {
		return inStateDir("make the volume", err)
	}
	if !privileged() && !userIdentity().separate {
		return nil // its files are the caller's
	}
	// Only in a sandbox can it be given to the code's user. For root, that shows that the file system can do it.
	return b.inVolume(ctx, dir, true, nil)
}

// ListVolumes implements [backend.Volumes].
func (b *Backend) ListVolumes(ctx context.Context) ([]backend.Volume, error) {
	dir, err := b.volumesDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	all := []backend.Volume{}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if hostmount.CheckVolumeName(e.Name()) != nil {
			continue
		}
		v, err := readVolume(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is removed just now
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func readVolume(dir string) (v backend.Volume, err error) {
	f, err := os.Open(filepath.Join(dir, volumeInfo))
	if err != nil {
		return v, fmt.Errorf("list volumes: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxVolumeInfo))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return v, fmt.Errorf("damaged info of volume %s: %w", filepath.Base(dir), err)
	}
	v.Name = filepath.Base(dir)
	return v, nil
}

// RemoveVolume implements [backend.Volumes].
func (b *Backend) RemoveVolume(ctx context.Context, name string, force bool) error {
	dir, err := b.volumesDir()
	if err != nil {
		return err
	}
	if hostmount.CheckVolumeName(name) != nil {
		return noVolume(name)
	}
	path := filepath.Join(dir, name)
	if !force {
		lock, err := lockVolume(path, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return b.volumeInUse(ctx, name)
		}
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	dead := filepath.Join(dir, deadVolume+rand.Text())
	err = os.Rename(path, dead)
	if errors.Is(err, fs.ErrNotExist) {
		return noVolume(name)
	}
	if err != nil {
		return fmt.Errorf("remove volume %s: %w", name, err)
	}
	if err := b.destroyVolume(ctx, dead); err != nil {
		return fmt.Errorf("volume %s is gone, but not all of its files are: llmsandbox gc tries again: %w", name, err)
	}
	return nil
}

func noVolume(name string) error {
	return errclass.Errorf(backend.ErrVolumeNotFound, "there is no volume %.80q", name)
}

// volumeInUse is the error of a volume that a sandbox has.
func (b *Backend) volumeInUse(ctx context.Context, name string) error {
	list, err := b.List(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, i := range list {
		if slices.ContainsFunc(i.Volumes, func(v backend.VolumeMount) bool { return v.Name == name }) {
			ids = append(ids, i.ID)
		}
	}
	who := "a sandbox that is being created or removed has"
	if len(ids) > 0 {
		who = fmt.Sprintf("%s %s", strings.Join(ids[:min(len(ids), 8)], ", "), map[bool]string{true: "has", false: "have"}[len(ids) == 1])
	}
	return errclass.Errorf(backend.ErrVolumeInUse, "%s volume %s: remove the sandbox first, or force it", who, name)
}

// lockVolume locks a volume at a path. What is locked is there: a removal renames it while it has the lock, unless it is forced.
func lockVolume(path string, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(filepath.Join(path, volumeLock), os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, noVolume(filepath.Base(path))
		}
		if err != nil {
			return nil, fmt.Errorf("lock a volume: %w", err)
		}
		if err := flock(f, how); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock volume %s: %w", filepath.Base(path), err)
		}
		was, err := f.Stat()
		now, nerr := os.Lstat(filepath.Join(path, volumeLock))
		if err == nil && nerr == nil && os.SameFile(was, now) {
			return f, nil
		}
		f.Close() // another one may have come in its place
		if err := cmp.Or(err, nerr); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lock a volume: %w", err)
		}
	}
}

// A heldVolume is a volume of a sandbox that is being created.
type heldVolume struct {
	backend.VolumeMount
	data *os.File // its directory, opened with O_PATH
	path string   // of that, without symbolic links
	lock *os.File // which the sandbox has until it ends; nil: of one without a name
	// unowned is set of one that is new and belongs to nobody yet.
	unowned bool
}

// openVolumes opens the volumes of a sandbox.
func (b *Backend) openVolumes(volumes []backend.VolumeMount) (opened []heldVolume, err error) {
	dir, err := b.volumesPath()
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		path := filepath.Join(dir, v.Name)
		lock, err := lockVolume(path, unix.LOCK_SH)
		if err == nil {
			var h heldVolume
			if h, err = openVolume(path); err == nil {
				h.VolumeMount, h.lock = v, lock
				opened = append(opened, h)
				continue
			}
			lock.Close()
		}
		closeVolumes(opened)
		if errors.Is(err, backend.ErrVolumeNotFound) {
			err = fmt.Errorf("%w: create it first", err)
		}
		return nil, err
	}
	return opened, nil
}

// openVolume opens the directory of a volume that code sees.
func openVolume(path string) (heldVolume, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return heldVolume{}, fmt.Errorf("open volume: %w", err)
	}
	h := heldVolume{path: filepath.Join(real, volumeData)}
	fd, err := unix.Open(h.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return heldVolume{}, fmt.Errorf("open volume: %w", err)
	}
	h.data = os.NewFile(uintptr(fd), h.path)
	return h, nil
}

// closeVolumes gives up volumes of a sandbox that has ended, or was not made.
func closeVolumes(volumes []heldVolume) {
	for _, v := range volumes {
		v.data.Close()
		v.lock.Close() // nil is an error that says nothing more
	}
}

// checkVolumes fails for volumes whose files the code's user could not have.
func (c *creation) checkVolumes() error {
	for _, v := range c.volumes {
		switch {
		case privileged():
			continue
		case c.spec.User != "":
			return fmt.Errorf("volume %s: %w: only as root of the machine can code with users of its own have it: leave User out", v.Name, backend.ErrUnsupported)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(v.data.Fd()), &st); err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		if st.Uid != c.identity.codeUID && !v.unowned {
			return fmt.Errorf("volume %s: %w: its files belong to user %d, and code is user %d here: see whether /etc/subuid was changed since it was made, and newuidmap was there", v.Name, backend.ErrUnsupported, st.Uid, c.identity.codeUID)
		}
	}
	return nil
}

// whyNoVolumeSize is why there is no limit for the size of a volume.
const whyNoVolumeSize = "what is in a volume is bounded by the file system of the folder of volumes only"

// volumeControls report on the volumes of a sandbox.
func (c *creation) volumeControls() []backend.Control {
	by := "mount of the caller's files"
	switch {
	case privileged():
		by = "idmapped mount"
	case c.identity.separate:
		by = "mount of files of the code's user"
	}
	all := []backend.Control{hostmount.VolumesControl(c.spec.Volumes, by)}
	if slices.ContainsFunc(c.spec.Volumes, func(v backend.VolumeMount) bool { return !v.ReadOnly }) {
		all = append(all, backend.Control{Name: "volume-size", Why: whyNoVolumeSize, Fix: "have /var/lib/llmsandbox, ~/.local/state/llmsandbox or LLMSANDBOX_STATE_DIR on a file system of its own, or mount volumes read-only"})
	}
	return all
}

// volumeUsers returns a user namespace in which the files of a volume are the code's.
func (o *owners) volumeUsers() (*os.File, error) {
	uids, gids := fmt.Sprintf("%d %d 1\n", firstVolumeID, o.users.codeUID), fmt.Sprintf("%d %d 1\n", firstVolumeID, o.users.codeGID)
	if o.users.users != 0 {
		uids, gids = volumeMap(o.users.insideUID, o.users.users), volumeMap(o.users.insideGID, o.users.groups)
	}
	return o.namespace([2]uint32{firstVolumeID, firstVolumeID}, uids, gids)
}

// volumeMap maps the ids of files in a volume to those of a sandbox with users of its own: the first is the user that code runs as, inside,
// and behind it is a place for each id, that one's included.
func volumeMap(inside, users uint32) string {
	text := fmt.Sprintf("%d %d 1\n", firstVolumeID, users+inside)
	if inside > 0 {
		text += fmt.Sprintf("%d %d %d\n", firstVolumeID+1, users, inside)
	}
	if rest := nsinit.RootID - inside - 1; rest > 0 {
		text += fmt.Sprintf("%d %d %d\n", firstVolumeID+2+inside, users+inside+1, rest)
	}
	return text
}

// volumeTarget is where a volume is in a sandbox that is made for it.
const volumeTarget = "/volume"

// inVolume makes a sandbox that has the volume of a directory, and calls do, if it is not nil, with its agent.
func (b *Backend) inVolume(ctx context.Context, dir string, unowned bool, do func(*agentclient.Client) error) error {
	h, err := openVolume(dir)
	if err != nil {
		return err
	}
	h.VolumeMount, h.unowned = backend.VolumeMount{Name: filepath.Base(dir), Target: volumeTarget}, unowned
	defer closeVolumes([]heldVolume{h}) // where there is no sandbox that does
	spec := backend.Spec{ID: "volume-" + strings.ToLower(rand.Text()), BestEffort: true}
	m, err := b.create(ctx, spec, func(c *creation) { c.volumes = []heldVolume{h} })
	if err != nil {
		return err
	}
	if do != nil {
		err = withAgent(ctx, m.Dial, do)
	}
	return errors.Join(err, m.Destroy(context.WithoutCancel(ctx)))
}

// destroyVolume removes a volume that has no name any more. What is in it belongs to the code's user, and may be deeper and meaner than this process can
// take, so it is removed in a sandbox first.
func (b *Backend) destroyVolume(ctx context.Context, dir string) error {
	data := filepath.Join(dir, volumeData)
	if !isEmpty(data) {
		err := b.inVolume(ctx, dir, false, func(agent *agentclient.Client) error {
			if err := agent.Chmod(ctx, volumeTarget, 0o700); err != nil {
				return err
			}
			for {
				list, err := agent.List(ctx, volumeTarget)
				if err != nil {
					return err
				}
				for _, f := range list.Files {
					if err := agent.Remove(ctx, volumeTarget+"/"+f.Name, agentclient.RemoveOptions{Recursive: true, Missing: true}); err != nil {
						return err
					}
				}
				if !list.Truncated {
					return nil
				}
			}
		})
		if err != nil && !privileged() { // root removes what is left, such as what belongs to other users of a sandbox
			return err
		}
	}
	return os.RemoveAll(dir)
}

// isEmpty reports whether a directory is known to have nothing in it, or is not there.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err == io.EOF
}

// collectVolumes removes what makers and removers of volumes have left that died.
func (b *Backend) collectVolumes(ctx context.Context) (found []backend.Leftover) {
	dir, err := b.volumesPath()
	if err != nil || b.inPlace() { // then there are none
		return nil
	}
	for _, path := range slices.Concat(withPrefix(dir, newVolume), withPrefix(dir, deadVolume)) {
		info, err := os.Lstat(path)
		if err != nil || strings.HasPrefix(filepath.Base(path), newVolume) && time.Since(info.ModTime()) < abandoned {
			continue
		}
		l := backend.Leftover{Kind: "volume", Name: filepath.Base(path)}
		l.Removed, l.Reason = outcome(b.destroyVolume(ctx, path))
		found = append(found, l)
	}
	return found
}
