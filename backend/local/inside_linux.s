// This file lets inside_unsafe_linux.go declare functions that package runtime implements.
