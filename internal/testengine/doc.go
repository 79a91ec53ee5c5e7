// Package testengine starts real container engines for tests: a Docker daemon, Podman
// as root, and Podman as an ordinary user made for it. They share nothing with the
// engines that the machine may run: each has its own data, sockets and configuration,
// no network of its own, and the first two their own mount namespace.
//
// An engine starts when a test binary first asks for it, and ends with the binary,
// whatever becomes of that: [Main] stops it in good order, and a binary that dies takes
// it along. Test binaries that want engines wait for each other, because the engines'
// images are kept between runs, in the user's cache directory.
//
// Linux only.
package testengine
