package language

import "math"

// Parallel is how many things a toolchain should do at once under a limit of CPUs; 0
// leaves it to the toolchain. One CPU is best used by two: one waits for files while
// the other computes.
func Parallel(cpus float64) int {
	if cpus <= 0 {
		return 0
	}
	return max(2, int(math.Ceil(cpus)))
}
