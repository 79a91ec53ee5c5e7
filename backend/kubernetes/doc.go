// Package kubernetes runs sandboxes as pods of a Kubernetes cluster: one sandbox, one pod.
//
// The guest agent is the main process of the pod's container "sandbox". An init container
// brings it into a volume that the code can only read. One long stream reaches it, through
// pods/exec, so that a run costs the API server nothing; when the stream breaks it is made
// again and the run goes on.
//
// All pods of one [Backend] belong to a Job that never makes a pod and whose deadline the
// Backend keeps pushing forward. When its process dies the deadline stays, the Job's time runs
// out, and the cluster itself removes the Job and the pods with it.
package kubernetes
