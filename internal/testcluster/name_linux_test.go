package testcluster

import "os"

// Of a binary that is killed to see what becomes of its cluster, that is another one.
func init() {
	if os.Getenv("LLMSANDBOX_TEST_CRASH") == "1" {
		name = "crash"
	}
}
