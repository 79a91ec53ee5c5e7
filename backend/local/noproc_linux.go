package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// whereTheyAre prints the variables by which programs find their files that otherwise read /proc/self/exe for that.
const whereTheyAre = `at() { readlink -f "$(command -v "$1")"; }
java=$(at java); java=${java%/bin/java}; [ ! -f "$java/lib/libjli.so" ] || echo "LD_LIBRARY_PATH=$java/lib"
go=$(at go); go=${go%/bin/go}; [ ! -d "$go/src/runtime" ] || echo "GOROOT=$go"`

// withoutProc gives a sandbox whose /proc is empty these variables.
func (m *machine) withoutProc(ctx context.Context) error {
	env := m.record.Guest.Env
	var out []byte
	err := withAgent(ctx, m.Dial, func(agent *agentclient.Client) error {
		p, err := agent.Start(ctx, agentproto.StartRequest{Argv: []string{"/bin/sh", "-c", whereTheyAre}, Env: env, Dir: "/", TimeoutMillis: 10_000, OutputLimit: 8 << 10})
		var missing *agentproto.Error
		if errors.As(err, &missing) && missing.Code == agentproto.CodeNotFound {
			return nil // an image without a shell
		}
		if err != nil {
			return err
		}
		out, _ = io.ReadAll(p.Stdout()) // what is missing is what the programs then say
		_, err = p.Wait(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for programs in the sandbox: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !slices.Contains([]string{"LD_LIBRARY_PATH", "GOROOT"}, name) || strings.IndexByte(value, 0) >= 0 {
			continue
		}
		if was := environ.Value(env, name); was != "" && name == "LD_LIBRARY_PATH" {
			value = was + ":" + value
		} else if was != "" {
			continue
		}
		env = environ.Override(env, []string{name + "=" + value})
	}
	m.record.Guest.Env = env
	return m.record.write(m.dir.path)
}
