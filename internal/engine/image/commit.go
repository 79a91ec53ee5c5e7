package image

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// CommitPrefix begins the names of the containers that Commit and CommitFiles make. They
// are never started, and last as long as the call: an old one is left from a process that
// died.
const CommitPrefix = "llmsandbox-commit-"

// A Commit says what an image made from a sandbox is like.
type Commit struct {
	// Tag is its name, which must be new.
	Tag string
	// Overwrite allows the name to be taken from the image that has it; it must be Tag
	// again, letter by letter.
	Overwrite string
	// Base is the image the sandbox was made from. Its environment, user, entrypoint,
	// command, labels and all else of its configuration are the new image's; one without
	// a command gets /bin/sh, Podman adds the variables that it gives all
	// containers, and its Commit loses the stop signal.
	Base Image
	// Workdir, when set, is kept as Image.Committed.
	Workdir string
	// Env, when set, is the environment in place of the base's. It has all of the base's
	// names.
	Env []string
	// Comment is kept in the image's history.
	Comment string
}

// Commit makes an image of a container's files. Nothing of the container's own
// configuration gets in: neither its environment, which may have secrets, nor its labels,
// by which it could be taken for a sandbox. For that the engine's own commit is not
// enough, which merges them in: the files are exported and imported again, so that the
// image has one layer with all files and shares none with its base.
//
// What is on a tmpfs or a volume, such as a sandbox's /sandbox and /tmp, is part of no
// container's files on any engine: see CommitFiles. Processes go on meanwhile; what they
// write is in the image or is not.
func (s *Store) Commit(ctx context.Context, containerID string, c Commit) (Image, error) {
	return s.named(ctx, "commit container "+containerID+" as", c, func(tag reference.NamedTagged) (Image, error) {
		files, err := s.Client.ContainerExport(ctx, containerID, client.ContainerExportOptions{})
		if err != nil {
			return Image{}, err
		}
		defer files.Close()
		flat, err := s.importFiles(ctx, files)
		if err != nil {
			return Image{}, err
		}
		img, err := s.fromContainer(ctx, flat, tag, c, nil)
		// The new image keeps its layer. Where the engine counts it as a parent it stays, and
		// goes with the new image.
		_, dropErr := s.Client.ImageRemove(context.WithoutCancel(ctx), flat, client.ImageRemoveOptions{})
		if errdefs.IsConflict(dropErr) || errdefs.IsNotFound(dropErr) {
			dropErr = nil
		}
		return img, joined(err, dropErr)
	})
}

// Derive makes an image that differs from its base in what the Commit says, and has the
// base's files.
func (s *Store) Derive(ctx context.Context, c Commit) (Image, error) {
	return s.named(ctx, "make image", c, func(tag reference.NamedTagged) (Image, error) {
		return s.fromContainer(ctx, c.Base.ID, tag, c, nil)
	})
}

// CommitFiles makes an image of its base and the files of a tar, in one layer on top of
// it, and tells what was left out. Only files below dir get in: see [ociimage.LayerFilter] for
// what is refused. They belong to uid and gid in the image. The tar may be hostile.
func (s *Store) CommitFiles(ctx context.Context, files io.Reader, dir string, uid, gid int, c Commit) (img Image, skipped []string, err error) {
	img, err = s.named(ctx, "commit files as", c, func(tag reference.NamedTagged) (Image, error) {
		return s.fromContainer(ctx, c.Base.ID, tag, c, func(w io.Writer) (err error) {
			skipped, err = filterTar(ctx, w, files, dir, uid, gid)
			return err
		})
	})
	return img, skipped, err
}

// named checks the tag and makes the image that gets it.
func (s *Store) named(ctx context.Context, what string, c Commit, make func(reference.NamedTagged) (Image, error)) (Image, error) {
	tag, err := s.checkTag(ctx, c)
	var img Image
	if err == nil {
		img, err = make(tag)
	}
	if err != nil {
		return Image{}, fmt.Errorf("%s %s: %w", what, clean(c.Tag), err)
	}
	return img, nil
}

// checkTag returns the tag in full when it may be given.
func (s *Store) checkTag(ctx context.Context, c Commit) (reference.NamedTagged, error) {
	ref, err := reference.ParseNormalizedNamed(c.Tag)
	if err != nil {
		return nil, fmt.Errorf("%w: the tag: %w", backend.ErrInvalid, err)
	}
	tag, ok := reference.TagNameOnly(ref).(reference.NamedTagged)
	if _, digested := ref.(reference.Digested); digested || !ok {
		return nil, fmt.Errorf("%w: the tag is a digest: name it like name:tag", backend.ErrInvalid)
	}
	if c.Overwrite != "" && c.Overwrite != c.Tag {
		return nil, fmt.Errorf("%w: what may be overwritten is %s, not the tag asked for", backend.ErrInvalid, clean(c.Overwrite))
	}
	_, err = s.inspect(ctx, tag.String())
	switch {
	case errdefs.IsNotFound(err):
		return tag, nil
	case err != nil:
		return nil, err
	case c.Overwrite == "":
		return nil, fmt.Errorf("%w: an image of that name exists: choose another name, or say that it may be overwritten", backend.ErrInvalid)
	}
	return tag, nil
}

// importFiles makes an image without a name of a file system, and returns its id.
func (s *Store) importFiles(ctx context.Context, files io.Reader) (string, error) {
	res, err := s.Client.ImageImport(ctx, client.ImageImportSource{Source: files, SourceName: "-"}, "", client.ImageImportOptions{})
	if err != nil {
		return "", err
	}
	defer res.Close()
	id := ""
	err = eachMessage(res, func(m message) {
		if m.Status != "" {
			id = m.Status // the last message is the id
		}
	})
	if err != nil {
		return "", err
	}
	if img, err := s.inspect(ctx, id); err != nil || img.ID == "" {
		return "", fmt.Errorf("the engine does not have what it imported as %q: %w", clean(id), err)
	}
	return id, nil
}

// fromContainer commits a container of an image that is never started, with the files of
// the tar that write, if any, writes. It has the base's configuration and nothing else.
func (s *Store) fromContainer(ctx context.Context, image string, tag reference.NamedTagged, c Commit, write func(io.Writer) error) (_ Image, err error) {
	config, err := s.baseConfig(ctx, c.Base)
	if err != nil {
		return Image{}, err
	}
	config.Image = image
	if c.Env != nil {
		config.Env = c.Env
	}
	if c.Workdir != "" {
		config.Labels = maps.Clone(config.Labels)
		if config.Labels == nil {
			config.Labels = map[string]string{}
		}
		config.Labels[ociimage.CommittedLabel] = c.Workdir
	}
	if len(config.Cmd)+len(config.Entrypoint) == 0 {
		config.Cmd = []string{"/bin/sh"} // engines have no container without a command
	}
	// It can have no label to be found by when this process dies, since that would be in
	// the image: it is known by its name.
	made, err := s.Client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: CommitPrefix + strings.ToLower(rand.Text()), Config: config, HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return Image{}, err
	}
	defer func() {
		_, e := s.Client.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if e != nil && !containers.Absent(e) {
			err = joined(err, e)
		}
	}()
	if write != nil {
		if err := containers.CopyTo(ctx, s.Client, made.ID, "/", write); err != nil {
			return Image{}, err
		}
	}
	res, err := s.Client.ContainerCommit(ctx, made.ID, client.ContainerCommitOptions{
		Reference: tag.String(), Comment: c.Comment, NoPause: true, Changes: changes(config),
		Config: &container.Config{}, // Podman wants one
	})
	if err != nil {
		return Image{}, err
	}
	img, err := s.inspect(ctx, tag.String())
	if err != nil {
		return Image{}, fmt.Errorf("the engine does not have what it committed as %s: %w", res.ID, err)
	}
	img.Ref, img.Made = reference.FamiliarString(tag), c.Overwrite == ""
	return img, nil
}

// baseConfig is the configuration of an image, as that of a container.
func (s *Store) baseConfig(ctx context.Context, base Image) (*container.Config, error) {
	res, err := s.Client.ImageInspect(ctx, base.ID)
	if err != nil {
		return nil, fmt.Errorf("the base image: %w", err)
	}
	// The two types have the same names in JSON.
	c := &container.Config{}
	raw, err := json.Marshal(res.Config)
	if err == nil {
		err = json.Unmarshal(raw, c)
	}
	if err != nil {
		return nil, fmt.Errorf("the base image: its configuration: %s", clean(err.Error()))
	}
	c.ArgsEscaped = false // of Windows only
	return c, nil
}

// changes is what Podman does not take over from a container into its image and every
// engine takes as an instruction.
func changes(c *container.Config) (list []string) {
	for p := range c.ExposedPorts {
		list = append(list, "EXPOSE "+p.String())
	}
	return list
}

// filterTar passes on a tar whose files are all to be below dir, an absolute path, as
// [ociimage.LayerFilter] says.
func filterTar(ctx context.Context, w io.Writer, r io.Reader, dir string, uid, gid int) (skipped []string, err error) {
	out := tar.NewWriter(w)
	f := ociimage.LayerFilter{UID: uid, GID: gid}
	err = f.Each(ctx, r, dir, func(h *tar.Header, content io.Reader) error {
		err := out.WriteHeader(h)
		if err == nil {
			_, err = io.Copy(out, content)
		}
		return err
	})
	if err == nil {
		err = out.Close()
	}
	return f.Skipped, err
}
