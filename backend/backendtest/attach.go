package backendtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// attachKnowsTheLimits: runtimes are sized by the sandbox's limits, also through
// a handle that did not set them.
func (s *suite) attachKnowsTheLimits(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "javascript", Limits: llmsandbox.Limits{Memory: 256 << 20}}, "node")
	const code = "console.log(require('v8').getHeapStatistics().heap_size_limit)"
	want := run(t, sb, code, nil)
	wantExit(t, want, 0)
	same := s.attach(t, sb)
	wantStdout(t, run(t, same, code, nil), want.Stdout)
	if same.Language() != "javascript" {
		t.Errorf("attached for %s, want \"javascript\"", same.Language())
	}
	if err := same.Close(); err != nil {
		t.Fatal(err)
	}
	wantExit(t, run(t, sb, code, nil), 0) // closing the handle leaves the sandbox alone
}

// listAndAttach uses a sandbox through its entry in the list and through a second handle.
func (s *suite) listAndAttach(t *testing.T) {
	ctx := testContext(t)
	before := time.Now()
	sb := s.open(t, llmsandbox.Options{
		Env: map[string]string{"GIVEN": "to the sandbox"}, Labels: map[string]string{"purpose": "to be listed", "odd key/1.x": "ü \"=\n"},
		Limits: llmsandbox.Limits{Memory: 256 << 20, PIDs: 77}, Lifetime: time.Hour,
	})
	list, err := llmsandbox.List(ctx, s.Backend)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == sb.ID() })
	if i < 0 {
		t.Fatalf("sandbox %s is not in the list %+v, want it there", sb.ID(), list)
	}
	info := list[i]
	if info.Backend != s.Backend.Name() || info.Language != "python" || info.Owner == "" || info.Image == "" {
		t.Errorf("listed as %+v: want its backend, language, owner and image", info)
	}
	if info.Labels["purpose"] != "to be listed" || info.Labels["odd key/1.x"] != "ü \"=\n" || len(info.Labels) != 2 {
		t.Errorf("labels are %q, want those that were given", info.Labels)
	}
	if info.Limits.Memory != 256<<20 || info.Limits.PIDs != 77 {
		t.Errorf("limits are %+v, want Memory = 256 MiB, PIDs = 77", info.Limits)
	}
	const slack = 2 * time.Minute // an engine may have a clock of its own
	if d := info.Created.Sub(before); d < -slack || d > slack {
		t.Errorf("created at %v, %v after it was asked for, want d >= -slack, d <= %v", info.Created, d, slack)
	}
	if d := info.Deadline.Sub(before); d < time.Hour-slack || d > time.Hour+slack {
		t.Errorf("ends at %v, %v after it was asked for, want an hour", info.Deadline, d)
	}
	wantExit(t, run(t, sb, "open('f', 'w').write('from the first')", nil), 0)
	for _, end := range []bool{false, true} {
		same, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend, Env: map[string]string{"ALSO": "to the handle"}})
		if err != nil {
			t.Fatal(err)
		}
		defer same.Close()
		wantStdout(t, run(t, same, "import os\nprint(open('f').read(), os.environ['GIVEN'], os.environ['ALSO'], sep=', ')", nil), "from the first, to the sandbox, to the handle\n")
		if same.Language() != "python" || same.ID() != sb.ID() || same.Workdir() != sb.Workdir() {
			t.Errorf("attached to %s, %s, in %s, want Language = \"python\", same.ID() = sb.ID(), same.Workdir() = sb.Workdir()", same.ID(), same.Language(), same.Workdir())
		}
		if !end {
			if err := same.Close(); err != nil {
				t.Error(err)
			}
			answers(t, sb) // closing the handle leaves the sandbox alone
			continue
		}
		if err := same.Destroy(ctx); err != nil {
			t.Error(err)
		}
		wantDone(t, sb)
		s.wantGone(t, sb.ID())
		if _, err := sb.Run(ctx, "print(1)", nil); !errors.Is(err, llmsandbox.ErrClosed) {
			t.Errorf("run after another handle ended it: %v, want ErrClosed", err)
		}
	}
}

func (s *suite) attachRefuses(t *testing.T) {
	ctx := testContext(t)
	for _, id := range []string{"", "../x", "A", "sb/../../etc"} {
		if _, err := llmsandbox.Attach(ctx, id, &llmsandbox.AttachOptions{Backend: s.Backend}); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("id %q: %v, want ErrInvalid", id, err)
		}
	}
	if _, err := llmsandbox.Attach(ctx, "sb-nowhere", &llmsandbox.AttachOptions{Backend: s.Backend}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("an id of no sandbox: %v, want ErrNotFound", err)
	}
	sb := s.shared(t)
	_, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend, Limits: llmsandbox.Limits{Memory: 64 << 20}})
	if !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("a memory limit for another owner's sandbox: %v, want ErrInvalid", err)
	}
}

// abuse86Ids tries ids that are paths.
func (s *suite) abuse86Ids(t *testing.T) {
	ctx := testContext(t)
	for _, id := range []string{"..", "../..", "a/b", "/etc", "", "A", "x\x00", strings.Repeat("a", 41), "-x", ".dead-x"} {
		if sb, err := llmsandbox.Attach(ctx, id, &llmsandbox.AttachOptions{Backend: s.Backend}); err == nil {
			t.Errorf("id %q was accepted, want an error", id)
			sb.Close()
		}
		if id == "" {
			continue // Open chooses one
		}
		if sb, err := llmsandbox.Open(ctx, new(s.options(llmsandbox.Options{ID: id}))); err == nil {
			t.Errorf("a sandbox was opened as %q, want an error", id)
			sb.Close()
		}
	}
}
