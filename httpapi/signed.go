package httpapi

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// signedPath begins the path of a signed URL. Its token follows.
const signedPath = "/v1/signed/"

// A signedFile is what a signed URL is good for. It is the content of its token, which nobody but servers with the same secret can read or make. Ids of
// sandboxes are random, so that none is another's later.
type signedFile struct {
	Project, KeyID, KeyName string // of who signed it
	Sandbox, Path, Method   string
}

// unseal reads the token of a signed URL.
func (s *Server) unseal(token, method string) (*signedFile, error) {
	var f signedFile
	if _, ok := s.sealer.unseal(signedPath, token, &f); !ok || f.Method != method {
		return nil, newProblem(http.StatusForbidden, "signature", "the URL was not signed by this server, or not for this, or its time is over: ask for a new one")
	}
	return &f, nil
}

type signedKey struct{}

// signed lets requests with a signed URL do what that is good for, in the name of who signed it.
func (s *Server) signed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.URL.Path, signedPath)
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if !ok || method != http.MethodGet && method != http.MethodPut { // there is none of another method
			next.ServeHTTP(w, r)
			return
		}
		f, err := s.unseal(token, method)
		if err != nil {
			writeProblem(w, s.problem(r.Context(), err))
			return
		}
		ctx := context.WithValue(r.Context(), signedKey{}, f)
		ctx = context.WithValue(ctx, callerKey{}, Caller{Project: f.Project, KeyID: f.KeyID, KeyName: f.KeyName, Scopes: []string{database.ScopeRead, database.ScopeWrite}})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// sandboxOf is the id of the sandbox that a request is about, where it is about one.
func sandboxOf(ctx huma.Context) string {
	if f, ok := ctx.Context().Value(signedKey{}).(*signedFile); ok {
		return f.Sandbox
	}
	return ctx.Param("id")
}

// A newURL is a request for a signed URL.
type newURL struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Body apitypes.NewURL
	asked
}

// A signedUpload is a request whose body is the content of a file.
type signedUpload struct {
	bodyReader

	Token string `path:"token" doc:"As sign-file has made it"`
	Mode  string `query:"mode" pattern:"^0?[0-7]{3}$" doc:"As for write-file"`
}

func (s *Server) signedRoutes() {
	const tag = "Files"
	answerOf(s, operation{
		id: "sign-file", method: http.MethodPost, path: "/v1/sandboxes/{id}/files/sign", tag: tag, write: true, summary: "Make a URL that reads or writes a file without a key",
		doc: "It is good until its time is over, or the sandbox ends.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *newURL) (apitypes.SignedURL, error) {
		caller, until := s.caller(ctx), time.Now().Add(seconds(in.Body.Seconds)).UTC().Truncate(time.Second)
		token, err := s.sealer.seal(signedPath, until, &signedFile{
			Project: caller.Project, KeyID: caller.KeyID, KeyName: caller.KeyName, Sandbox: sb.ID(), Path: in.Body.Path, Method: in.Body.Method,
		})
		return apitypes.SignedURL{URL: s.scheme() + "://" + in.host + signedPath + token, Expires: until}, err
	})
	const path = signedPath + "{token}"
	ranges(register(s, operation{
		id: "read-signed-file", method: http.MethodGet, path: path, tag: tag, write: true, signed: true, summary: "Read a file by a signed URL",
	}, func(ctx context.Context, in *struct {
		Token   string `path:"token" doc:"As sign-file has made it"`
		Range   string `header:"Range" doc:"As for read-file"`
		IfRange string `header:"If-Range" doc:"As for read-file"`
	}) (*huma.StreamResponse, error) {
		sb, f, err := s.signedSandbox(ctx)
		if err != nil {
			return nil, err
		}
		return s.readFile(ctx, sb, f.Path, ranged{in.Range, in.IfRange})
	}))
	register(s, operation{
		id: "write-signed-file", method: http.MethodPut, path: path, tag: tag, status: http.StatusNoContent, write: true, signed: true, summary: "Write a file by a signed URL",
		doc: "As for write-file.",
	}, func(ctx context.Context, in *signedUpload) (*struct{}, error) {
		sb, f, err := s.signedSandbox(ctx)
		if err != nil {
			return nil, err
		}
		mode, _ := strconv.ParseUint(in.Mode, 8, 32) // it was checked; 0 where it is left out
		return nil, sb.WriteFileFrom(ctx, f.Path, in.body, fs.FileMode(mode))
	}).RequestBody = &huma.RequestBody{Required: true, Content: binary(octets)}
}

// signedSandbox is the open sandbox that a request with a signed URL is about.
func (s *Server) signedSandbox(ctx context.Context) (*llmsandbox.Sandbox, *signedFile, error) {
	f, ok := ctx.Value(signedKey{}).(*signedFile)
	if !ok {
		return nil, nil, fmt.Errorf("a request for %s... was let through without a signature", signedPath)
	}
	sb, err := s.service.Get(ctx, f.Project, f.Sandbox)
	return sb, f, err
}
