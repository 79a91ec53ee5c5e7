// Package kernel is the host's end of the protocol with a kernel's driver, which
// docs/kernels.md describes: requests and events as lines of JSON, and the splitting of
// the driver's output into that of its cells.
//
// All that comes from a driver may be forged by the code in it. It is checked for its
// form and bounded in size here; what it claims is the code's own word about itself.
package kernel
