package hostmount

import (
	"errors"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// maxVolumeName is how long the name of a volume can be.
const maxVolumeName = 63

// ParseVolume reads NAME:SANDBOX[:ro].
func ParseVolume(text string) (backend.VolumeMount, error) {
	name, target, _ := strings.Cut(text, ":")
	target, readOnly := strings.CutSuffix(target, ":ro")
	if name == "" || !strings.HasPrefix(target, "/") {
		return backend.VolumeMount{}, errors.New("use NAME:SANDBOX[:ro], where SANDBOX is an absolute path such as /sandbox/data")
	}
	if target != "/" {
		target = strings.TrimSuffix(target, "/")
	}
	return backend.VolumeMount{Name: name, Target: target, ReadOnly: readOnly}, nil
}

// CheckVolumeName reports whether a volume can have a name. Its error wraps backend.ErrInvalid.
func CheckVolumeName(name string) error {
	letter := func(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }
	other := func(r rune) bool { return !letter(r) && !strings.ContainsRune("_.-", r) }
	if name == "" || len(name) > maxVolumeName || !letter(rune(name[0])) || strings.ContainsFunc(name, other) {
		return errclass.Errorf(backend.ErrInvalid, "volume %.80q: its name has at most %d of a-z, 0-9, '_', '.' and '-', the first a letter or digit", name, maxVolumeName)
	}
	return nil
}

// CheckVolumes reports whether volumes can be where they are to be, without looking at them. Mounts and layers are what else is
// mounted, and workdir is the working directory, which may be empty. Its error wraps backend.ErrInvalid.
func CheckVolumes(volumes []backend.VolumeMount, mounts []backend.Mount, layers []backend.Layer, workdir string) error {
	if len(volumes) == 0 {
		return nil
	}
	if n := len(volumes) + len(mounts); n > Max {
		return errclass.Errorf(backend.ErrInvalid, "%d volumes and mounts are more than %d", n, Max)
	}
	var taken []string
	for _, l := range layers {
		taken = append(taken, strings.TrimSuffix(l.Target, "/"))
	}
	for _, m := range mounts {
		taken = append(taken, m.Target)
	}
	for _, v := range volumes {
		if err := CheckVolumeName(v.Name); err != nil {
			return err
		}
		err := checkTarget(v.Target, taken)
		if err == nil && workdir != "" && within(workdir, v.Target) {
			err = fmt.Errorf("it would hide the working directory %s", workdir)
		}
		if err != nil {
			return errclass.Errorf(backend.ErrInvalid, "volume %s at %q: %w", v.Name, v.Target, err)
		}
		taken = append(taken, v.Target)
	}
	return nil
}

// VolumesControl reports where volumes are, which are mounted nosuid and nodev.
func VolumesControl(volumes []backend.VolumeMount, by string) backend.Control {
	return VolumesControlHow(volumes, by, "nosuid, nodev")
}

// VolumesControlHow reports where volumes are, and how.
func VolumesControlHow(volumes []backend.VolumeMount, by, how string) backend.Control {
	list := []string{how}
	for _, v := range volumes {
		mode := "rw"
		if v.ReadOnly {
			mode = "ro"
		}
		list = append(list, fmt.Sprintf("%s (%s)", v.Target, mode))
	}
	return backend.Control{Name: "volumes", Enforced: true, By: by, Detail: strings.Join(list, ", ")}
}
