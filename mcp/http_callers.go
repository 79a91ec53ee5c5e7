package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/llmsandbox/llmsandbox"
)

// minToken is the least that cannot be found by trying.
const minToken = 16

// maxTokens bounds how many are compared for a request.
const maxTokens = 1000

// callers are those who have a token. Only its digest is kept, which also makes all
// comparisons equally long.
type callers [][sha256.Size]byte

func newCallers(tokens []string) (callers, error) {
	if len(tokens) > maxTokens {
		return nil, fmt.Errorf("mcp: %d tokens: %w: use at most %d", len(tokens), llmsandbox.ErrInvalid, maxTokens)
	}
	var c callers
	for i, token := range tokens {
		if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("mcp: token %d: %w: use at least %d characters of ASCII without spaces", i+1, llmsandbox.ErrInvalid, minToken)
		}
		c = append(c, sha256.Sum256([]byte(token)))
	}
	return c, nil
}

// find returns whose token a request bears; "" when none is asked for.
func (c callers) find(r *http.Request) (string, *fault) {
	if len(c) == 0 {
		return "", nil
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", newFault(http.StatusUnauthorized, "a bearer token is needed: send it in the Authorization header")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	digest, found := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for i, known := range c {
		found |= subtle.ConstantTimeCompare(digest[:], known[:]) * (i + 1)
	}
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || found == 0 {
		return "", newFault(http.StatusUnauthorized, "the bearer token is not one of this server's")
	}
	return fmt.Sprintf("token-%d", found), nil
}

type callerKey struct{}

func withCaller(r *http.Request, caller string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
}

// tell makes the protocol's handlers know who calls, so that no caller can go on with
// another's session.
func (c callers) tell(next http.Handler) http.Handler {
	if len(c) == 0 {
		return next
	}
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		caller, ok := ctx.Value(callerKey{}).(string)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: caller}, nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}
