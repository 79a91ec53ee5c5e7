//go:build !unix

package image

const openNonblock = 0
