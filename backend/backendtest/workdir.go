package backendtest

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// workdirs are working directories that cannot be used, with what an error says of them.
var workdirs = map[string]string{
	"nope":        `/sandbox/nope" does not exist`,
	"file":        `/sandbox/file" is not a directory`,
	"/etc/passwd": `working directory "/etc/passwd" is not a directory`,
}

// wrongWorkdir wants the error of a working directory that cannot be used, and of nothing else.
func wrongWorkdir(t testing.TB, dir string, err error) {
	t.Helper()
	if !errors.Is(err, llmsandbox.ErrWorkdir) || errors.Is(err, llmsandbox.ErrToolchain) || !strings.Contains(err.Error(), workdirs[dir]) {
		t.Errorf("in %s: %v, want llmsandbox.ErrWorkdir alone, with %q", dir, err, workdirs[dir])
	}
}

// workdirsOfLanguages shows that a wrong working directory is not taken for a missing toolchain.
func (s *suite) workdirsOfLanguages(t *testing.T) {
	languages := slices.Sorted(maps.Keys(hellos))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			sb := sandboxes.use(t, i, hellos[lang].program)
			if err := sb.WriteFile(testContext(t), "file", nil); err != nil {
				t.Fatal(err)
			}
			for dir := range workdirs {
				res, err := sb.Run(testContext(t), hellos[lang].code, &llmsandbox.RunOptions{Dir: dir, Stdout: io.Discard})
				wrongWorkdir(t, dir, err)
				wantStatus(t, res, llmsandbox.StatusSetupFailed)
				k, err := sb.Kernel(testContext(t), lang, &llmsandbox.KernelOptions{Dir: dir})
				if errors.Is(err, llmsandbox.ErrUnsupported) || errors.Is(err, llmsandbox.ErrToolchain) && lang == "cpp" {
					continue // there is no kernel; see kernelsOfLanguages
				}
				wrongWorkdir(t, dir, err)
				if err == nil {
					_ = k.Close()
				}
			}
			wantExit(t, run(t, sb, hellos[lang].code, nil), 0)
		})
	}
}

// workdirsOfCommands shows the same of what has no language.
func (s *suite) workdirsOfCommands(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	if err := sb.WriteFile(ctx, "file", nil); err != nil {
		t.Fatal(err)
	}
	for dir := range workdirs {
		_, err := sb.Exec(ctx, []string{"pwd"}, &llmsandbox.ExecOptions{Dir: dir})
		wrongWorkdir(t, dir, err)
		_, err = sb.Shell(ctx, "pwd", &llmsandbox.ExecOptions{Dir: dir})
		wrongWorkdir(t, dir, err)
		_, err = sb.Start(ctx, []string{"pwd"}, &llmsandbox.ExecOptions{Dir: dir})
		wrongWorkdir(t, dir, err)
	}
}
