// Package access finds out which cluster is to be used, where it is and as whom, and puts
// what a cluster answers in words that somebody can act on. It also knows which
// permissions the Kubernetes backend needs, and asks which of them are missing.
package access
