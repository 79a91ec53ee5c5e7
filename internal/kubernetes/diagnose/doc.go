// Package diagnose finds out whether sandboxes work on a Kubernetes cluster, and how well
// they are cut off there: what is missing, and what to do about it. Whether the cluster
// enforces its NetworkPolicies no API reports; it is shown with pods that try.
//
// The pods of that probe run programs of the directory probe, with the python3 or the perl of
// their image: every image of Debian has perl, and the default images are Debian's. They
// are called as
//
//	serve TOKEN PORT                         say TOKEN to every caller, on every address
//	ready TOKEN PORT                         exit 0 when this pod's own server does
//	call TOKEN PORT PERIOD PATIENCE STEP...  times in milliseconds
//
// A STEP is must=ADDRESS, tried until it is reached, or cut=ADDRESS, tried until five
// tries in a row have failed, one a PERIOD. Either gives up after PATIENCE. For each,
// "STEP ADDRESS reached|blocked MS" is printed; the time of a cut that is blocked is when
// it was last reached, 0 for never.
package diagnose
