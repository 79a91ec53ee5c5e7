package httpgate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
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
// read. It fails with backend.ErrInvalid for a file that others can read, or without
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
		return nil, fmt.Errorf("%w: it is no regular file", backend.ErrInvalid)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w: others may read it (mode %#o): chmod 600 it, and change the token", backend.ErrInvalid, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenFile {
		return nil, fmt.Errorf("%w: it is larger than %d KiB", backend.ErrInvalid, maxTokenFile>>10)
	}
	var tokens []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%w: there is no token in it; remove it to have one made", backend.ErrInvalid)
	}
	return tokens, nil
}

// minToken is the least that cannot be found by trying.
const minToken = 16

// maxTokens bounds how many are compared for a request.
const maxTokens = 1000

// digests are those of tokens: only they are kept, which also makes all comparisons
// equally long.
func digests(tokens []string) ([][sha256.Size]byte, error) {
	if len(tokens) > maxTokens {
		return nil, fmt.Errorf("%d tokens: %w: use at most %d", len(tokens), backend.ErrInvalid, maxTokens)
	}
	var all [][sha256.Size]byte
	for i, token := range tokens {
		if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("token %d: %w: use at least %d characters of ASCII without spaces", i+1, backend.ErrInvalid, minToken)
		}
		all = append(all, sha256.Sum256([]byte(token)))
	}
	return all, nil
}

// What Identify fails with.
var (
	// ErrUnknown: it does not know the token.
	ErrUnknown = errors.New("the token is not known")
	// ErrForbidden: it knows the token, which may not do this. Who sent it is told the text of the error.
	ErrForbidden = errors.New("the token does not allow this")
)

// WithCaller returns a context that names who sends a request, for Identify.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

// authenticate returns the request's context with who sends it.
func (g *Gate) authenticate(r *http.Request) (context.Context, error) {
	ctx := r.Context()
	if g.identify == nil {
		return ctx, nil
	}
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values("X-API-Key")
	if len(bearers)+len(keys) == 0 && g.options.Session != nil {
		if session := g.options.Session(r); session != nil {
			if !g.FromOwnPage(r) {
				return nil, refuse(http.StatusForbidden, "a session counts only in requests of this server's own pages: send a bearer token in the Authorization header")
			}
			ctx, err := session(ctx)
			if errors.Is(err, ErrUnknown) {
				return nil, refuse(http.StatusUnauthorized, "the session has ended: log in again")
			}
			return identified(ctx, err)
		}
	}
	if len(bearers)+len(keys) == 0 {
		return nil, refuse(http.StatusUnauthorized, "a bearer token is needed: send it in the Authorization header")
	}
	if len(bearers)+len(keys) > 1 {
		return identified(ctx, ErrUnknown)
	}
	scheme, token := "Bearer", ""
	if len(keys) == 1 {
		token = keys[0]
	} else {
		scheme, token, _ = strings.Cut(bearers[0], " ")
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return identified(ctx, ErrUnknown)
	}
	return identified(g.identify(ctx, strings.TrimSpace(token)))
}

// identified is what authenticate returns for what Identify has.
func identified(ctx context.Context, err error) (context.Context, error) {
	switch {
	case errors.Is(err, ErrUnknown):
		return nil, refuse(http.StatusUnauthorized, "the bearer token is not one of this server's")
	case errors.Is(err, ErrForbidden):
		return nil, refuse(http.StatusForbidden, "%v", err)
	case err != nil: // what failed is nobody's business yet
		return nil, refuse(http.StatusServiceUnavailable, "tokens cannot be checked now: try again later")
	}
	return ctx, nil
}

// oneOf knows tokens by their digests.
func oneOf(tokens [][sha256.Size]byte) func(context.Context, string) (context.Context, error) {
	return func(ctx context.Context, token string) (context.Context, error) {
		digest, found := sha256.Sum256([]byte(token)), 0
		for i, known := range tokens {
			found |= subtle.ConstantTimeCompare(digest[:], known[:]) * (i + 1)
		}
		if found == 0 {
			return nil, ErrUnknown
		}
		return WithCaller(ctx, fmt.Sprintf("token-%d", found)), nil
	}
}
