// Package access finds out which cluster is to be used, where it is and as which user, and turns
// what a cluster answers into errors that say what to do. It also knows which
// permissions the Kubernetes backend needs, and asks which of them are missing.
package access
