package llmsandbox

import (
	"fmt"

	"github.com/llmsandbox/llmsandbox/artifact"
)

// An Artifact is something a run produced beside its output: a picture, a table, a
// page, a file. See package artifact.
type Artifact = artifact.Artifact

// ArtifactOptions say what a run's result carries beside its output: what the
// language's plotting libraries show and save, and the regular files that the run makes
// or changes below the folder "artifacts" of the sandbox's working folder. Of runs that
// go on side by side, the one that ends first gets a file that any of them wrote there.
type ArtifactOptions struct {
	// Off captures nothing.
	Off bool
	// Unshown also captures figures that were made and never shown or saved.
	Unshown bool
	// MaxCount and MaxBytes bound what one run's result carries, MaxBytes its whole
	// size; 0 means 64 and 64 MiB. Result.ArtifactsDropped says what was over them.
	MaxCount int
	MaxBytes int64
}

const (
	defaultArtifacts     = 64
	defaultArtifactBytes = 64 << 20
	// mostArtifacts is what a search in the sandbox answers with at most.
	mostArtifacts     = 4096
	mostArtifactBytes = 1 << 30
)

// resolve fills in the defaults.
func (o ArtifactOptions) resolve() (ArtifactOptions, error) {
	switch {
	case o.MaxCount < 0 || o.MaxCount > mostArtifacts:
		return o, fmt.Errorf("at most %d artifacts: %w: use a number from 1 to %d, or 0 for %d; Off captures nothing", o.MaxCount, ErrInvalid, mostArtifacts, defaultArtifacts)
	case o.MaxBytes < 0 || o.MaxBytes > mostArtifactBytes:
		return o, fmt.Errorf("artifacts of at most %d bytes: %w: use a number from 1 to %d, or 0 for %d", o.MaxBytes, ErrInvalid, mostArtifactBytes, defaultArtifactBytes)
	}
	if o.MaxCount == 0 {
		o.MaxCount = defaultArtifacts
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultArtifactBytes
	}
	return o, nil
}

// Artifacts returns what all runs since the sandbox was opened, or since
// [Sandbox.ClearArtifacts], have produced, in the order in which the runs ended. They are
// bounded as one run's are by the sandbox's own ArtifactOptions; dropped says what is
// over that.
func (s *Sandbox) Artifacts() (artifacts []Artifact, dropped []string) {
	return s.produced.all()
}

// ClearArtifacts forgets them. Files in the sandbox stay.
func (s *Sandbox) ClearArtifacts() { s.produced.clear() }
