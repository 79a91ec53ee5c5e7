//go:build linux

package main

import (
	"github.com/llmsandbox/llmsandbox/internal/guest"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
)

// addFiles gives the agent the service of files.
func addFiles(opts *guest.Options) error {
	service, err := files.New(files.Options{Workdir: opts.Workdir})
	opts.Files = service
	return err
}
