package httpgate

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// NewToken makes a bearer token of 256 random bits.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// What Identify fails with.
var (
	// ErrUnknown: it does not know the token.
	ErrUnknown = errors.New("the token is not known")
	// ErrForbidden: it knows the token, which may not do this. Who sent it is told the text of the error.
	ErrForbidden = errors.New("the token does not allow this")
)

// authenticate returns the request's context with who sends it.
func (g *Gate) authenticate(r *http.Request) (context.Context, error) {
	ctx := r.Context()
	if g.options.Identify == nil {
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
	return identified(g.options.Identify(ctx, strings.TrimSpace(token)))
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
