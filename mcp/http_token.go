package mcp

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

// NewToken makes a bearer token of 256 random bits.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const maxTokenFile = 256 << 10

// TokenFile returns the tokens of a file, one a line; empty lines and those from # on are
// left out. A file that does not exist is made, with a new token that only its owner can
// read. It fails with llmsandbox.ErrInvalid for a file that others can read, or without
// a token.
func TokenFile(path string) (tokens []string, made bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		token := NewToken()
		_, err = fmt.Fprintln(f, token)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, false, fmt.Errorf("write a new token: %w", errors.Join(err, os.Remove(path)))
		}
		return []string{token}, true, nil
	case !errors.Is(err, fs.ErrExist):
		return nil, false, fmt.Errorf("make a token file: %w", err)
	}
	tokens, err = readTokens(path)
	if err != nil {
		return nil, false, fmt.Errorf("token file %s: %w", path, err)
	}
	return tokens, false, nil
}

func readTokens(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is no regular file", llmsandbox.ErrInvalid)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w: others may read it (mode %#o): chmod 600 it, and change the token", llmsandbox.ErrInvalid, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenFile {
		return nil, fmt.Errorf("%w: it is larger than %d KiB", llmsandbox.ErrInvalid, maxTokenFile>>10)
	}
	var tokens []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%w: there is no token in it; remove it to have one made", llmsandbox.ErrInvalid)
	}
	return tokens, nil
}
