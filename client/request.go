package client

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// newSandbox asks for a sandbox with options.
func newSandbox(o *llmsandbox.Options) (*apitypes.NewSandbox, error) {
	err := only("Options", *o, "Language", "Image", "Lifetime", "IdleTimeout", "Labels", "Env", "Limits", "Network", "Libraries", "Environment", "Resettable",
		"Template", "Imports", "Secrets", "Artifacts", "Workdir", "User", "Sudo", "WritableRoot", "BestEffort", "Volumes")
	if err != nil {
		return nil, err
	}
	limits, err := runLimits(o.Limits)
	if err != nil {
		return nil, err
	}
	n, err := network("Options.Network", o.Network)
	if err != nil {
		return nil, err
	}
	asked := &apitypes.NewSandbox{
		Template: o.Template, Imports: o.Imports, Workdir: o.Workdir, User: o.User, Sudo: o.Sudo, Writable: o.WritableRoot, BestEffort: o.BestEffort,
		Language: o.Language, Image: o.Image, Lifetime: o.Lifetime.Seconds(), Idle: o.IdleTimeout.Seconds(), Labels: o.Labels, Env: o.Env,
		Limits: limits, Network: n, Libraries: o.Libraries, Environment: o.Environment, Resettable: o.Resettable, Volumes: volumeMounts(o.Volumes),
	}
	for _, s := range o.Secrets {
		asked.Secrets = append(asked.Secrets, apitypes.Secret(s))
	}
	if o.Artifacts != (llmsandbox.ArtifactOptions{}) {
		asked.Artifacts = new(apitypes.Artifacts(o.Artifacts))
	}
	return asked, nil
}

// oneShot asks for a run of code in a sandbox with options.
func oneShot(code string, o *llmsandbox.Options) (*apitypes.OneShot, error) {
	if err := only("Options", *o, "Language", "Image", "Env", "Limits", "Network", "Libraries", "Environment", "Volumes"); err != nil {
		return nil, err
	}
	if o.Limits.Output != 0 {
		return nil, fmt.Errorf("Options.Limits.Output: %w for a run without a sandbox: open one with it", llmsandbox.ErrUnsupported)
	}
	limits, err := runLimits(o.Limits)
	if err != nil {
		return nil, err
	}
	n, err := network("Options.Network", o.Network)
	if err != nil {
		return nil, err
	}
	return &apitypes.OneShot{
		Program: apitypes.Program{Language: o.Language, Code: code, Env: o.Env, Libraries: o.Libraries, Timeout: limits.Timeout},
		Image:   o.Image, Environment: o.Environment, Limits: limits.SandboxLimits, Network: n, Volumes: volumeMounts(o.Volumes),
	}, nil
}

func volumeMounts(volumes []llmsandbox.VolumeMount) (asked []apitypes.VolumeMount) {
	for _, v := range volumes {
		asked = append(asked, apitypes.VolumeMount(v))
	}
	return asked
}

// program asks for a run of code in a sandbox.
func program(ctx context.Context, code string, o *llmsandbox.RunOptions) (*apitypes.Program, error) {
	if err := only("RunOptions", *o, "Language", "Name", "Files", "Args", "Env", "Dir", "Stdin", "Stdout", "Stderr", "Timeout", "Libraries"); err != nil {
		return nil, err
	}
	timeout, err := timeout("RunOptions.Timeout", o.Timeout)
	if err != nil {
		return nil, err
	}
	p := &apitypes.Program{
		Language: o.Language, Code: code, Name: o.Name, Args: o.Args, Env: o.Env, Dir: o.Dir, Libraries: o.Libraries, Timeout: timeout,
	}
	if len(o.Files) > 0 {
		p.Files = make(map[string]apitypes.File, len(o.Files))
		for name, content := range o.Files {
			p.Files[name] = content
		}
	}
	p.Stdin, err = readInput(ctx, o.Stdin)
	return p, err
}

// command asks for a program of a sandbox, or a line for its shell.
func command(ctx context.Context, argv []string, line string, o *llmsandbox.ExecOptions) (*apitypes.Command, error) {
	if err := only("ExecOptions", *o, "Env", "Dir", "Stdin", "Stdout", "Stderr", "Timeout"); err != nil {
		return nil, err
	}
	timeout, err := timeout("ExecOptions.Timeout", o.Timeout)
	if err != nil {
		return nil, err
	}
	c := &apitypes.Command{Argv: argv, Shell: line, Env: o.Env, Dir: o.Dir, Timeout: timeout}
	c.Stdin, err = readInput(ctx, o.Stdin)
	return c, err
}

// network asks for what a sandbox may reach; nil asks for nothing.
func network(name string, n llmsandbox.Network) (*apitypes.Network, error) {
	if err := only(name, n, "Mode", "Allow"); err != nil {
		return nil, err
	}
	if n.Mode == "" && len(n.Allow) == 0 {
		return nil, nil
	}
	asked := &apitypes.Network{Mode: n.Mode, Allow: n.Allow}
	if n.Mode == "" {
		asked.Mode = llmsandbox.NetworkNone
	}
	return asked, nil
}

func runLimits(l llmsandbox.Limits) (apitypes.RunLimits, error) {
	for _, f := range []struct {
		name   string
		lifted bool
	}{
		{"Memory", l.Memory == llmsandbox.Unlimited}, {"CPUs", l.CPUs == llmsandbox.Unlimited}, {"PIDs", l.PIDs == llmsandbox.Unlimited},
		{"Disk", l.Disk == llmsandbox.Unlimited}, {"Output", l.Output == llmsandbox.Unlimited},
	} {
		if f.lifted {
			return apitypes.RunLimits{}, unlimited("Options.Limits." + f.name)
		}
	}
	timeout, err := timeout("Options.Limits.Timeout", l.Timeout)
	return apitypes.RunLimits{
		SandboxLimits: apitypes.SandboxLimits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs, Disk: l.Disk}, Timeout: timeout, Output: l.Output,
	}, err
}

// timeout is one in seconds.
func timeout(name string, d time.Duration) (float64, error) {
	if d == llmsandbox.Unlimited {
		return 0, unlimited(name)
	}
	return d.Seconds(), nil
}

func unlimited(name string) error {
	return fmt.Errorf("%s is Unlimited: %w: no limit of a server is lifted by its clients: leave it out, or use a number", name, llmsandbox.ErrUnsupported)
}

// only fails where options have anything that the API has no field for. Names are those of the fields that it has.
func only(name string, options any, names ...string) error {
	v := reflect.ValueOf(options)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || slices.Contains(names, f.Name) || isEmpty(v.Field(i)) {
			continue
		}
		return fmt.Errorf("%s.%s: %w: the API has nothing like it: leave it out", name, f.Name, llmsandbox.ErrUnsupported)
	}
	return nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// readInput reads a program's input to its end; a nil reader has none. When ctx ends first, the reader is left when its Read returns.
func readInput(ctx context.Context, r io.Reader) (string, error) {
	if r == nil {
		return "", nil
	}
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, apitypes.MaxBody+1))
		read <- input{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case in := <-read:
		switch {
		case in.err != nil:
			return "", fmt.Errorf("read Stdin: %w", in.err)
		case len(in.text) > apitypes.MaxBody:
			return "", fmt.Errorf("the program's input (Stdin): %w: a server takes at most %d MiB: write a file, and let the program read it", llmsandbox.ErrTooLarge, apitypes.MaxBody>>20)
		}
		return string(in.text), nil
	}
}

// checkText fails where a request has text that JSON would change.
func checkText(body any) error { return checkValue("", reflect.ValueOf(body)) }

func checkValue(name string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkValue(name, v.Elem())
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return fmt.Errorf("%s: %w: it is not UTF-8, and the API has text only: write it to a file", name, llmsandbox.ErrUnsupported)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkValue(v.Type().Field(i).Name, v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if err := checkValue(name, entry.Key()); err != nil {
				return err
			}
			if err := checkValue(name, entry.Value()); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // a file, which may have anything in it
			return nil
		}
		for i := range v.Len() {
			if err := checkValue(name, v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
