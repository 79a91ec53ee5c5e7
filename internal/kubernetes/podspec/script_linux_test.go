package podspec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// feed runs the init container's script in a directory, and has talk say the client's part.
func feed(t *testing.T, dir, class string, talk func(in io.Writer, out *bufio.Reader)) (stderr string, err error) {
	t.Helper()
	r := plain()
	r.RuntimeClass = class
	command := build(t, r).Spec.InitContainers[0].Command
	script := strings.ReplaceAll(strings.ReplaceAll(command[2], "$$", "$"), "cd "+AgentDir+"\n", "cd "+dir+"\n")
	cmd := exec.Command(command[0], command[1], script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	talk(in, bufio.NewReader(out))
	in.Close()
	err = cmd.Wait()
	return said.String(), err
}

// TestFeedScript has this machine's shell take the agent.
func TestFeedScript(t *testing.T) {
	filter, agent := bytes.Repeat([]byte("f\n"), 1500), bytes.Repeat([]byte("agent\x00\r\n"), 300_000)
	for class, mode := range map[string]fs.FileMode{"": 0o111, "gvisor": 0o555} {
		dir := t.TempDir()
		stderr, err := feed(t, dir, class, func(in io.Writer, out *bufio.Reader) {
			for range 3 { // as often as it is asked
				fmt.Fprintln(in)
				if arch, err := out.ReadString('\n'); err != nil || len(arch) < 2 {
					t.Errorf("arch %q, %v, want no error, len(arch) >= 2", arch, err)
				}
			}
			// In pieces of every size, as they come through a stream.
			all := append([]byte(fmt.Sprintf("%d %d\n", len(filter), len(agent))), append(bytes.Clone(filter), agent...)...)
			for n := 1; len(all) > 0; n = min(2*n+1, len(all)) {
				in.Write(all[:n])
				all = all[n:]
			}
		})
		if err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		for name, want := range map[string]struct {
			mode    fs.FileMode
			content []byte
		}{"agent": {mode, agent}, "seccomp": {0o444, filter}} {
			st, err := os.Stat(filepath.Join(dir, name))
			if err != nil || st.Mode() != want.mode || st.Size() != int64(len(want.content)) {
				t.Errorf("%s: %v, %v, want no error, Mode = %v, Size = %v", name, st, err, want.mode, int64(len(want.content)))
			}
			os.Chmod(filepath.Join(dir, name), 0o600)
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want.content) {
				t.Errorf("%s has other bytes: %v, want no error, bytes.Equal(got, want.content) = true", name, err)
			}
		}
		closed := filepath.Join(dir, filepath.Base(filepath.Dir(closedFile)))
		if st, err := os.Stat(closed); err != nil || st.Mode() != fs.ModeDir {
			t.Errorf("the closed directory: %v, %v, want no error, Mode = fs.ModeDir", st, err)
		}
		os.Chmod(closed, 0o700)
		if st, err := os.Stat(filepath.Join(closed, filepath.Base(closedFile))); err != nil || st.Size() != 0 {
			t.Errorf("the closed file: %v, %v, want no error, Size = 0", st, err)
		}
	}
}

// TestFeedScriptCutShort ends with an error and no agent that could be started.
func TestFeedScriptCutShort(t *testing.T) {
	for _, said := range []string{"", "\n", "\n3\n", "\n3 5\n", "\n3 5\nfff", "\n3 5\nfffagen", "\nx y\nfffagent"} {
		dir := t.TempDir()
		stderr, err := feed(t, dir, "", func(in io.Writer, out *bufio.Reader) { io.WriteString(in, said) })
		if err == nil {
			t.Errorf("%q: it ended well: %s, want an error", said, stderr)
		}
		if st, err := os.Stat(filepath.Join(dir, "agent")); err == nil && st.Mode()&0o111 != 0 {
			t.Errorf("%q: there is an agent that can be started, want an error or st.Mode()&0o111 = 0", said)
		}
	}
}
