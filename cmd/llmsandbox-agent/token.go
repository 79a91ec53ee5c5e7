//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
)

// maxToken bounds a token, in bytes.
const maxToken = 256

// readToken reads the secret that clients must send first, where code shares the
// agent's uid and could therefore connect. It comes over a descriptor, or, where an
// engine can pass none, in an environment variable: that of a process that cannot be
// traced is closed to others of its uid, and nothing is passed on to programs.
func readToken(f flags) ([]byte, error) {
	switch {
	case f.tokenEnv != "":
		token, ok := os.LookupEnv(f.tokenEnv)
		if !ok {
			return nil, fmt.Errorf("read the token: the environment has no %s", f.tokenEnv)
		}
		if err := os.Unsetenv(f.tokenEnv); err != nil {
			return nil, fmt.Errorf("forget the token's variable: %w", err)
		}
		return checkToken([]byte(token))
	case f.tokenFD >= 0:
		file := os.NewFile(uintptr(f.tokenFD), "token")
		defer file.Close()
		token, err := io.ReadAll(io.LimitReader(file, maxToken+1))
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		return checkToken(token)
	}
	return nil, nil
}

func checkToken(token []byte) ([]byte, error) {
	if len(token) == 0 || len(token) > maxToken {
		return nil, fmt.Errorf("the token must have 1 to %d bytes", maxToken)
	}
	return token, nil
}
