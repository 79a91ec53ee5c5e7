// Package ociimage keeps OCI images on this machine without an engine or a daemon:
// it pulls them from a registry, or reads an OCI layout directory or a `docker save`
// tar, and unpacks each layer once into a directory that an overlay mount can use.
//
// # What a layer directory looks like
//
// Every layer directory is the lower directory of an overlay mounted with the option
// userxattr: a deleted name is a character device 0:0, an opaque directory has the
// extended attribute user.overlay.opaque. Kernels let ordinary users make both,
// so there is one format for root and rootless. Where root unpacks, opaque directories
// also have trusted.overlay.opaque, for mounts without userxattr.
//
// All files belong to the user who unpacked them; setuid and setgid bits, device
// files and every other extended attribute are left out.
//
// # Store
//
//	lock            flock: shared while pulling, exclusive while removing
//	locks/          one flock a layer, so that two pulls unpack it once
//	refs/           one file a name: which image it means
//	images/         one file an image; a process that uses the image holds its lock
//	layers/<hex>/   layer.json and fs/, named by the digest of the uncompressed tar
//	tmp/            what is being unpacked; renamed into layers/ when complete
//
// Lock order: lock, then one of locks/, then a file of images/.
//
// Any number of processes may use one store. A layer directory that exists is complete
// and on disk.
package ociimage
