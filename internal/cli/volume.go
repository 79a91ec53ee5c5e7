package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newVolumeCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "volume",
		Aliases: []string{"volumes"},
		Short:   "Create, list and remove volumes, and copy files into or out of them",
		Long: `Create, list and remove volumes of a backend, and copy files into or out of them. A volume is a
directory with a name. It stays until it is removed, and sandboxes have it with --volume, one after
the other or several at once.`,
		Example: `  llmsandbox volume create cache
  llmsandbox run --volume cache:/sandbox/cache app.py
  llmsandbox volume copy cache:result.csv .`,
	}, newVolumeCreateCommand(), newVolumeListCommand(), newVolumeRemoveCommand(), newVolumeCopyCommand())
}

func newVolumeCreateCommand() *cobra.Command {
	var place place
	var labels []string
	var size string
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Create an empty volume",
		Long: `Create an empty volume. On a Kubernetes cluster it is a claim with a size, which its storage driver
need not hold it to. Elsewhere its size is not limited: code can fill the file system that it is on.`,
		Example: `  llmsandbox volume create cache
  llmsandbox volume create models --label team=search
  llmsandbox volume create data --backend kubernetes --size 20g`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pairs, err := pairs("label", labels)
			if err != nil {
				return err
			}
			bytes, err := volumeSize(size)
			if err != nil {
				return err
			}
			b, err := place.open()
			if err != nil {
				return err
			}
			v, err := llmsandbox.CreateVolume(cmd.Context(), b, llmsandbox.Volume{Name: args[0], Labels: pairs, Size: bytes})
			if err != nil {
				return placed(&place, err)
			}
			fmt.Println(v.Name)
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&labels, "label", nil, "attach a label to the volume: `NAME=VALUE` (repeatable)")
	cmd.Flags().StringVar(&size, "size", "", "`SIZE` of the volume, such as 20g, where the backend can have one (default on Kubernetes: 1g)")
	place.Claims.register(cmd.Flags())
	return place.on(cmd)
}

// volumeSize reads the value of --size; an empty text is 0.
func volumeSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := bytesize.Parse(text)
	if err == nil && n == 0 {
		err = errors.New("use a size above 0")
	}
	if err != nil {
		return 0, fmt.Errorf("--size %q: %w", text, err)
	}
	return n, nil
}

func newVolumeListCommand() *cobra.Command {
	return newPlacedList(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List volumes",
		Example: `  llmsandbox volume list
  llmsandbox volume list --json`,
	}, "names", llmsandbox.ListVolumes, func(v llmsandbox.Volume) string { return v.Name }, printVolumes)
}

func printVolumes(volumes []llmsandbox.Volume) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "NAME\tCREATED\tSIZE\tLABELS")
	for _, v := range volumes {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(v.Labels)) {
			labels = append(labels, termsafe.String(name+"="+v.Labels[name]))
		}
		size := "-"
		if v.Size > 0 {
			size = bytesize.Format(v.Size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Name, day(v.Created), size, cmp.Or(strings.Join(labels, ","), "-"))
	}
	return w.Flush()
}

func newVolumeRemoveCommand() *cobra.Command {
	var place place
	var force bool
	cmd := &cobra.Command{
		Use:     "remove [flags] NAME...",
		Aliases: []string{"rm"},
		Short:   "Remove volumes with all that is in them",
		Long: `Remove volumes with all that is in them. A volume that a sandbox has is removed with --force only,
on a cluster when the sandbox has ended.`,
		Example: `  llmsandbox volume remove cache
  llmsandbox volume remove --force cache models`,
		Args: cobra.MinimumNArgs(1),
		RunE: each(func(ctx context.Context, name string) error {
			b, err := place.open()
			if err != nil {
				return err
			}
			defer stderr.begin("Removing " + termsafe.String(name))()
			return placed(&place, llmsandbox.RemoveVolume(ctx, b, name, force))
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also remove volumes that sandboxes have, which live on")
	return place.on(cmd)
}

func newVolumeCopyCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:     "copy [flags] SOURCE DESTINATION",
		Aliases: []string{"cp"},
		Short:   "Copy files into or out of a volume",
		Long: `Copy a file or directory into or out of a volume. One of the two arguments is NAME:PATH, where
the path of the volume's own directory is /. Links and special files are skipped. Of the
permissions, only read, write and execute are kept.`,
		Example: `  llmsandbox volume copy data.csv cache:/data.csv
  llmsandbox volume copy cache:/ ./backup`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, fromPath, out := volumePath(args[0])
			to, toPath, in := volumePath(args[1])
			if out == in {
				return errors.New("volume copy: exactly one of source and destination is NAME:PATH")
			}
			b, err := place.open()
			if err != nil {
				return err
			}
			moved := stderr.begin("Copying " + args[0])
			var copied llmsandbox.CopyResult
			if in {
				copied, err = llmsandbox.CopyToVolume(cmd.Context(), b, args[0], to, toPath)
			} else if err = checkDestination(args[1]); err == nil {
				copied, err = llmsandbox.CopyFromVolume(cmd.Context(), b, from, fromPath, args[1])
			}
			moved()
			printSkipped(copied)
			return placed(&place, err)
		},
	})
}

// volumePath cuts NAME:PATH. What has no name of a volume before the colon is a path of the host.
func volumePath(arg string) (name, path string, inside bool) {
	name, path, inside = strings.Cut(arg, ":")
	if !inside || hostmount.CheckVolumeName(name) != nil {
		return "", arg, false
	}
	return name, cmp.Or(path, "/"), true
}

// volumeFlag reads the values of --volume.
func volumeFlag(values []string) ([]llmsandbox.VolumeMount, error) {
	var all []llmsandbox.VolumeMount
	for _, value := range values {
		v, err := hostmount.ParseVolume(value)
		if err != nil {
			return nil, fmt.Errorf("--volume %q: %w", value, err)
		}
		all = append(all, v)
	}
	return all, nil
}
