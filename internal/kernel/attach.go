package kernel

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// Attach takes over the kernel whose process p another handle has started. The caller has the turn, in
// which the cell that runs goes on as cell says: it calls Wait and End.
func Attach(ctx context.Context, c Config, p Process, cell Cell) (*Kernel, *Turn, error) {
	k := newKernel(c)
	d := k.newDriver(p)
	d.adopted = true
	k.driver = d
	if !c.Set.add(k) {
		p.Detach()
		return nil, nil, c.Link.Alive()
	}
	k.readDescription(ctx, p.Tag)
	k.resumed = make(chan struct{})
	t := &Turn{kernel: k, driver: d, resumes: true}
	return k, t, t.Begin(context.Background(), cell) // its request has no code, and so is not too long
}

// Resumed is closed when the turn that Attach returned has ended. It is nil without Attach.
func (k *Kernel) Resumed() <-chan struct{} { return k.resumed }

// Detach lets the kernel go on without this handle, once the cell that runs has ended.
func (k *Kernel) Detach(ctx context.Context) error {
	t, err := k.Take(ctx)
	if err != nil {
		return fmt.Errorf("detach from the %s kernel: %w", k.Language.Title, err)
	}
	k.writeDescription(ctx, t.driver.process.Tag)
	k.leave()
	t.driver.process.Acknowledge() // the answers of what was asked are not for the next handle
	t.driver.process.Detach()
	<-t.driver.gone
	return nil
}

// probe asks what a driver answers at once where no cell runs. It may get lost: a cell that waits for
// input reads it in place of an answer.
func (d *driver) probe() Request {
	d.probing = d.last
	return Request{Op: OpComplete, ID: d.last, Cursor: new(int)}
}

// probed reports whether an event is the answer to the probe, which may come late.
func (d *driver) probed(e Event) bool {
	return e.Event == EventReply && e.ID == d.probing && d.probing != 0
}

// A Tag is the agent's tag of a driver's process, which programs do not see.
type Tag struct {
	Kernel   string // the kernel's id, which a process that is started in its place gets as well
	Language string
	Run      string // names the process's files
	Mark     string // of its cells
	// Artifacts means that they are captured.
	Artifacts bool
}

const tagPrefix = "kernel"

// NewMark returns a mark for the output of a driver's cells.
func NewMark() string {
	return strings.ToLower(rand.Text())
}

// String is the tag as the agent keeps it.
func (t Tag) String() string {
	captured := "-"
	if t.Artifacts {
		captured = "artifacts"
	}
	return strings.Join([]string{tagPrefix, t.Kernel, t.Language, t.Run, t.Mark, captured}, " ")
}

// ParseTag parses what String returns; false: it is not the tag of a driver's process.
func ParseTag(text string) (Tag, bool) {
	f := strings.Split(text, " ")
	if len(f) != 6 || f[0] != tagPrefix || slices.ContainsFunc(f[1:5], invalidName) {
		return Tag{}, false
	}
	return Tag{Kernel: f[1], Language: f[2], Run: f[3], Mark: f[4], Artifacts: f[5] == "artifacts"}, true
}

// invalidName reports whether a name cannot be part of a path as it is.
func invalidName(name string) bool {
	return name == "" || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
}

// maxDescription bounds what is read of a kernel's description: code can write it.
const maxDescription = 4 << 10

// Description is the file with the Info of a process whose handle has detached.
func (t Tag) Description(tempDir string) string {
	return path.Join(tempDir, ".llmsandbox-kernel-"+t.Run)
}

// writeDescription leaves a description for the next handle, which can do without.
func (k *Kernel) writeDescription(ctx context.Context, tag Tag) {
	client, err := k.Link.Client(ctx)
	if err == nil {
		text, _ := json.Marshal(k.Info()) // strings always have a JSON form
		_, err = client.WriteFile(ctx, tag.Description(k.TempDir), bytes.NewReader(text), agentclient.WriteOptions{Mode: 0o600, Create: true})
	}
	k.Link.Warn("a kernel's description could not be written", err)
}

// readDescription reads what writeDescription has written.
func (k *Kernel) readDescription(ctx context.Context, tag Tag) {
	client, err := k.Link.Client(ctx)
	if err != nil {
		return
	}
	text, err := client.ReadAll(ctx, tag.Description(k.TempDir), maxDescription)
	var info Info
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err == nil { // else no handle has detached, or code has changed it
		k.describe(info.Version, info.Flavor)
	}
}
