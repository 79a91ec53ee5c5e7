// Package testcluster starts a real one-node Kubernetes cluster for tests, with the kit in
// test/cluster, and breaks it as they ask. It shares nothing with the cluster that
// `make cluster-up` starts, or with any other: its processes, mounts and network are in
// namespaces of its own.
//
// The cluster starts when a test binary first asks for it, and ends with the binary,
// whatever becomes of that. Test binaries that want one wait for each other. What was built
// for it, and its images, stay in the user's cache directory.
//
// What a test does to a daemon of the cluster it does to all tests of the binary: such
// tests must not run in parallel with others.
//
// Linux only, as root.
package testcluster
