// This file lets fork_unsafe.go declare functions that package runtime implements.
