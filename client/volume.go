package client

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// CreateVolume makes an empty volume of the key's project with the name, labels and size of v as [llmsandbox.CreateVolume] does. A name has at most 46
// characters.
func (c *Client) CreateVolume(ctx context.Context, v llmsandbox.Volume) (llmsandbox.Volume, error) {
	var made apitypes.Volume
	body := &apitypes.NewVolume{Name: v.Name, Labels: v.Labels, Size: v.Size}
	if err := c.call(ctx, &request{method: http.MethodPost, path: "/v1/volumes", body: body, want: http.StatusCreated}, &made); err != nil {
		return llmsandbox.Volume{}, fmt.Errorf("create volume %q: %w", v.Name, err)
	}
	return llmsandbox.Volume(made), nil
}

// ListVolumes returns the volumes of the key's project, sorted by name.
func (c *Client) ListVolumes(ctx context.Context) ([]llmsandbox.Volume, error) {
	var list apitypes.Volumes
	err := c.get(ctx, "volumes", &list)
	return apitypes.All(list.Volumes, func(v apitypes.Volume) llmsandbox.Volume { return llmsandbox.Volume(v) }), err
}

// RemoveVolume removes a volume of the key's project as [llmsandbox.RemoveVolume] does.
func (c *Client) RemoveVolume(ctx context.Context, name string, force bool) error {
	r, err := volumeRequest(http.MethodDelete, name, "")
	if err != nil {
		return err
	}
	r.want = http.StatusNoContent
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	if err := c.call(ctx, r, nil); err != nil {
		return fmt.Errorf("remove volume %q: %w", name, err)
	}
	return nil
}

// CopyToVolume copies a file or directory of this machine to a path in a volume as [llmsandbox.CopyToVolume] does.
func (c *Client) CopyToVolume(ctx context.Context, hostPath, name, path string) (llmsandbox.CopyResult, error) {
	res, err := transfer.CopyIn(ctx, volumeGuest{c, name}, hostPath, inVolume(name, path), transfer.Options{})
	return llmsandbox.CopyResult(res), err
}

// CopyFromVolume copies a file or directory of a volume to this machine as [llmsandbox.CopyFromVolume] does. The server is not trusted more than what is in
// the volume: nothing is made outside of hostPath. Of what the server has left out, the number is reported.
func (c *Client) CopyFromVolume(ctx context.Context, name, path, hostPath string) (llmsandbox.CopyResult, error) {
	res, err := transfer.CopyOut(ctx, volumeGuest{c, name}, inVolume(name, path), hostPath, transfer.Options{})
	return llmsandbox.CopyResult(res), err
}

// TarToVolume unpacks a tar archive that it reads from r into a directory of a volume as [llmsandbox.TarToVolume] does. When it fails, r may be read until
// its Read returns.
func (c *Client) TarToVolume(ctx context.Context, r io.Reader, name, path string) (llmsandbox.CopyResult, error) {
	res, err := volumeGuest{c, name}.TarIn(ctx, inVolume(name, path), r, agentclient.TarLimits{})
	return copyResult(res), err
}

// TarFromVolume writes a file or directory of a volume to w as a tar archive, of which the members' names begin with member; an empty one is the path's
// own. It is what [llmsandbox.TarFromVolume] writes, if the server is to be trusted. Of what was left out, the number is reported.
func (c *Client) TarFromVolume(ctx context.Context, name, path, member string, w io.Writer) (llmsandbox.CopyResult, error) {
	res, err := volumeGuest{c, name}.TarOut(ctx, inVolume(name, path), member, w)
	return copyResult(res), err
}

// inVolume is a path in a volume, below the volume's name.
func inVolume(name, path string) string { return "/" + name + "/" + strings.TrimLeft(path, "/") }

// volumeRequest asks for something of a volume.
func volumeRequest(method, name, path string) (*request, error) {
	if err := hostmount.CheckVolumeName(name); err != nil { // no other goes into the path
		return nil, err
	}
	return &request{method: method, path: "/v1/volumes/" + name + path}, nil
}

// A volumeGuest is a volume as package transfer needs it, with paths of inVolume. The server has the limits.
type volumeGuest struct {
	client *Client
	name   string
}

func (g volumeGuest) request(method, path string) (*request, error) {
	r, err := volumeRequest(method, g.name, "/archive")
	if err == nil {
		r.query = url.Values{"path": {"/" + strings.TrimLeft(strings.TrimPrefix(path, "/"+g.name), "/")}}
	}
	return r, err
}

// errSeen ends the reading of an archive of which the first header is enough.
var errSeen = errors.New("the first header was read")

// Stat tells what an archive of the path begins with.
func (g volumeGuest) Stat(ctx context.Context, path string) (info agentproto.FileInfo, err error) {
	r, err := g.request(http.MethodGet, path)
	if err != nil {
		return info, err
	}
	r.accept = tarType
	_, _, err = g.client.download(ctx, r, path, func(res *http.Response) (int64, error) {
		h, err := tar.NewReader(res.Body).Next()
		if err == io.EOF {
			info.Type = agentproto.TypeDir
			return 0, errSeen
		}
		if err != nil {
			return 0, malformed("an archive: %w", err)
		}
		info = agentproto.FileInfo{Name: h.Name, Size: uint64(max(h.Size, 0)), Mode: uint32(h.FileInfo().Mode().Perm()), Type: agentproto.TypeRegular}
		if h.Typeflag == tar.TypeDir || strings.Contains(strings.TrimSuffix(h.Name, "/"), "/") { // an empty directory's archive has its header, and another's may begin with a file
			info.Type = agentproto.TypeDir
		}
		return 0, errSeen
	})
	if errors.Is(err, errSeen) {
		return info, nil
	}
	return info, agentError(err)
}

func (g volumeGuest) TarOut(ctx context.Context, path, name string, w io.Writer) (agentproto.TarResult, error) {
	r, err := g.request(http.MethodGet, path)
	if err != nil {
		return agentproto.TarResult{}, err
	}
	if r.accept = tarType; name != "" {
		r.query.Set("name", name)
	}
	return g.client.tarOut(ctx, r, path, w)
}

func (g volumeGuest) TarIn(ctx context.Context, dir string, content io.Reader, _ agentclient.TarLimits) (agentproto.TarResult, error) {
	r, err := g.request(http.MethodPut, dir)
	if err != nil {
		return agentproto.TarResult{}, err
	}
	return g.client.tarIn(ctx, r, dir, content)
}
