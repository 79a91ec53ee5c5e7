// Package image looks after the images of a container engine with the Docker API
// (Docker from 20.10, Podman from 4): it finds, pulls, loads, builds, commits and removes
// them.
//
// What a name means is what it means to the embedded backend too (see
// [github.com/llmsandbox/llmsandbox/internal/ociimage.Locate]): a directory or a file
// here, else a name that the engine knows or can pull.
//
// Whatever is brought to the engine says so in [Image.Made], and only that is ever
// removed by [Store.Remove]. Names that this package gives to images:
//
//	llmsandbox-load:<digest>   loaded from a directory or a file; the config's digest
//	llmsandbox-build:<digest>  built; the digest of all that went in
//
// What a registry, a build or a container says is not trusted: it is read line by line
// with a limit, and cleaned before it gets into an error or a progress message.
package image
