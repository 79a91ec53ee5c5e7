package e2b

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/filesystem"
)

const filesPath = "/files"

const (
	// maxUploads bounds the files of one request, whose paths are kept for its answer.
	maxUploads = 4096
	// sniffed is how much of a file tells its type.
	sniffed = 512
)

func (s *Server) fileRoutes(mux *http.ServeMux) {
	route := func(pattern string, do func(http.ResponseWriter, *http.Request, *target) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			t := targetOf(r.Context())
			err := s.checkSignature(r, t.id)
			if err == nil {
				err = do(w, r, t)
			}
			switch {
			case err == nil:
			case isGone(err):
				s.answerGone(w, r, t.id, err)
			default:
				answer(w, s.refusalOf(r.Context(), fault(err)))
			}
		})
	}
	route("GET "+filesPath, s.download)
	route("POST "+filesPath, s.upload)
	route("POST "+filesPath+"/compose", s.compose)
	f := fileService{s}
	unary(mux, filesystemPath+"Stat", f.Stat)
	unary(mux, filesystemPath+"MakeDir", f.MakeDir)
	unary(mux, filesystemPath+"Move", f.Move)
	unary(mux, filesystemPath+"ListDir", f.ListDir)
	unary(mux, filesystemPath+"Remove", f.Remove)
	streaming(mux, filesystemPath+"WatchDir", f.WatchDir)
	unary(mux, filesystemPath+"CreateWatcher", f.CreateWatcher)
	unary(mux, filesystemPath+"GetWatcherEvents", f.GetWatcherEvents)
	unary(mux, filesystemPath+"RemoveWatcher", f.RemoveWatcher)
}

// isNameless reports whether only its signature or token tells which sandbox a request is for. A URL has no headers, and where SDKs use one for all
// sandboxes, no name either; older ones leave out the headers after they have connected to a sandbox.
func (s *Server) isNameless(r *http.Request) bool {
	return (isSigned(r) || r.Header.Get(tokenHeader) != "" && !isControl(r)) && r.Header.Get(sandboxHeader) == "" && s.ofHost(r) == nil
}

// maxSigned bounds the query of a nameless request, which is compared with all sandboxes.
const maxSigned = 16 << 10

// namelessPlace is where a nameless request is for. It fails with llmsandbox.ErrNotFound for a token that is of none.
func (s *Server) namelessPlace(r *http.Request) (*place, error) {
	if len(r.URL.RawQuery) > maxSigned {
		return nil, refusal(http.StatusRequestURITooLong, fmt.Sprintf("the query has more than %d bytes", maxSigned))
	}
	q, signed := r.URL.Query(), r.Header.Get(tokenHeader) == ""
	for _, id := range s.service.Held() {
		if signed && s.isSignature(q, r.Method, id) || !signed && s.hasToken(r, id) {
			return &place{id, envdPort}, nil
		}
	}
	if signed {
		return nil, refusal(http.StatusUnauthorized, "invalid signature")
	}
	return nil, llmsandbox.ErrNotFound
}

// isSignature reports whether a query has a signature by a sandbox's token of what the request asks for. It may have expired.
func (s *Server) isSignature(q url.Values, method, id string) bool {
	operation := "read"
	if method == http.MethodPost {
		operation = "write"
	}
	text := strings.Join([]string{q.Get("path"), operation, q.Get("username"), s.accessToken(id)}, ":")
	if q.Has("signature_expiration") {
		text += ":" + q.Get("signature_expiration")
	}
	sum := sha256.Sum256([]byte(text))
	return hmac.Equal([]byte(q.Get("signature")), []byte("v1_"+base64.RawStdEncoding.EncodeToString(sum[:])))
}

// checkSignature fails for a request that has neither the sandbox's token nor, in its place, a signature of what it asks for.
func (s *Server) checkSignature(r *http.Request, id string) error {
	if !isSigned(r) {
		return nil // whether it has the token was looked at before
	}
	if r.Header.Get(tokenHeader) != "" {
		if !s.hasToken(r, id) {
			return refusal(http.StatusUnauthorized, "the header "+tokenHeader+" is not the sandbox's token")
		}
		return nil
	}
	q := r.URL.Query()
	if !s.isSignature(q, r.Method, id) {
		return refusal(http.StatusUnauthorized, "invalid signature")
	}
	if !q.Has("signature_expiration") {
		return nil
	}
	seconds, err := strconv.ParseInt(q.Get("signature_expiration"), 10, 64)
	if err != nil {
		return refusal(http.StatusBadRequest, "signature_expiration is no number of seconds")
	}
	if time.Now().Unix() >= seconds {
		return refusal(http.StatusUnauthorized, "signature is already expired")
	}
	return nil
}

// faults are the statuses of what the agent says about files.
var faults = map[agentproto.ErrorCode]int{
	agentproto.CodeBadRequest: http.StatusBadRequest,
	agentproto.CodeNotFound:   http.StatusNotFound,
	agentproto.CodeExists:     http.StatusConflict,
	agentproto.CodePermission: http.StatusForbidden,
	agentproto.CodeNotDir:     http.StatusBadRequest,
	agentproto.CodeIsDir:      http.StatusBadRequest,
	agentproto.CodeNotEmpty:   http.StatusBadRequest,
	agentproto.CodeNoSpace:    http.StatusInsufficientStorage,
	agentproto.CodeUnsafe:     http.StatusBadRequest,
	agentproto.CodeTooLarge:   http.StatusRequestEntityTooLarge,
	agentproto.CodeBusy:       http.StatusTooManyRequests,
}

// fault is what the agent says about a file as a client hears it. Other errors are as they were.
func fault(err error) error {
	var said *agentproto.Error
	if errors.As(err, &said) && faults[said.Code] != 0 {
		return refusal(faults[said.Code], valid(said.Error()))
	}
	return err
}

// path is a path that a client gives as a user, in the sandbox. What root asks for is done as for the ordinary user, since the files
// of a sandbox are only served as that one: it fails where root alone may.
func (t *target) path(user, p string) (string, error) {
	home := t.sandbox.Workdir()
	switch user {
	case "", ordinaryUser:
	case rootUser:
		home = rootHome
	default:
		return "", refusal(http.StatusUnauthorized, fmt.Sprintf("invalid username: '%s'", user))
	}
	return expand(home, p), nil
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, t *target) error {
	q, ctx := r.URL.Query(), r.Context()
	asked, err := t.path(q.Get("username"), q.Get("path"))
	if err != nil {
		return err
	}
	p, name := asked, path.Base(asked)
	i, err := t.sandbox.Stat(ctx, p)
	if err == nil && i.Mode&fs.ModeSymlink != 0 {
		p, i, err = newResolver(t.sandbox).resolve(ctx, p)
	}
	switch {
	case err != nil:
		return err
	case i.IsDir():
		return refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is a directory", valid(p)))
	case !i.Mode.IsRegular():
		return refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is not a regular file", valid(p)))
	}
	disposition, kind := "inline", mime.TypeByExtension(path.Ext(name))
	if s.isNameless(r) { // at the console's origin, where nothing from inside is shown or a script
		disposition, kind = "attachment", "application/octet-stream"
	}
	w.Header().Set("Content-Disposition", cmp.Or(mime.FormatMediaType(disposition, map[string]string{"filename": name}), disposition))
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:") // a page from inside is shown, but does nothing
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var head bytes.Buffer
	_, err = t.sandbox.ReadFileRange(ctx, p, 0, sniffed, &head)
	if agentlink.Code(err) == agentproto.CodeUnsafe && (strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/")) {
		return s.downloadKernel(w, r, t, asked)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", cmp.Or(kind, http.DetectContentType(head.Bytes())))
	if i.Size == 0 && head.Len() > 0 { // what a file of such a file system has is known when it is read
		begun := &beginner{w: w}
		_, err := t.sandbox.ReadFileTo(ctx, p, begun)
		return begun.end(err)
	}
	// Two writes within the clock's resolution may make the same one: it is a weak one.
	w.Header().Set("Etag", fmt.Sprintf(`W/"%x-%x"`, i.ModTime.UnixMicro(), i.Size))
	c := &content{ctx: ctx, sandbox: t.sandbox, path: p, size: i.Size}
	defer c.close()
	http.ServeContent(w, r, name, i.ModTime, c)
	if c.err != nil {
		panic(http.ErrAbortHandler) // so that no client takes a part of a file for all of it
	}
	return nil
}

// downloadKernel answers with a file of the kernel, which only programs in the sandbox may read: through the agent they would be its own.
func (s *Server) downloadKernel(w http.ResponseWriter, r *http.Request, t *target, p string) error {
	if err := s.service.Admit(r.Context(), t.project); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	begun := &beginner{w: w}
	res, err := t.sandbox.Exec(r.Context(), []string{"cat", p}, &llmsandbox.ExecOptions{Stdout: begun})
	if err == nil && res.Status != llmsandbox.StatusOK {
		err = refusal(http.StatusForbidden, valid(cmp.Or(strings.TrimSpace(res.Stderr), "the file could not be read as a whole")))
	}
	return begun.end(err)
}

// A beginner is an answer that begins with its first byte: until then it may be that of an error.
type beginner struct {
	w     http.ResponseWriter
	begun bool
}

func (b *beginner) Write(p []byte) (int, error) {
	b.begun = true
	return b.w.Write(p)
}

func (b *beginner) end(err error) error {
	if err != nil && b.begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

// A content is that of a file, read as it is asked for, from where it is asked for.
type content struct {
	ctx      context.Context //nolint:containedctx // it is the request's
	sandbox  *llmsandbox.Sandbox
	path     string
	size, at int64
	pipe     *io.PipeReader // nil: nothing is being read
	read     chan struct{}  // closed when nothing is any more
	err      error
}

func (c *content) Seek(offset int64, whence int) (int64, error) {
	c.close()
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	c.at = offset
	return offset, nil
}

func (c *content) Read(p []byte) (int, error) {
	left := c.size - c.at
	if left <= 0 {
		return 0, io.EOF
	}
	if c.pipe == nil {
		r, w := io.Pipe()
		at, read := c.at, make(chan struct{})
		go func() {
			defer close(read)
			_, err := c.sandbox.ReadFileRange(c.ctx, c.path, at, left, w)
			w.CloseWithError(err)
		}()
		c.pipe, c.read = r, read
	}
	n, err := c.pipe.Read(p[:min(int64(len(p)), left)])
	c.at += int64(n)
	if err == io.EOF { // it has become shorter
		err = io.ErrUnexpectedEOF
	}
	c.err = err
	return n, err
}

func (c *content) close() {
	if c.pipe != nil {
		c.pipe.Close()
		<-c.read
		c.pipe = nil
	}
}

// written is a file in the answer to an upload.
type written struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

func writtenTo(p string) written { return written{valid(p), valid(path.Base(p)), "file"} }

func (s *Server) upload(w http.ResponseWriter, r *http.Request, t *target) error {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Metadata-") { // SDKs do not send it to envdVersion
			return refusal(http.StatusBadRequest, fmt.Sprintf("%s: files of this server have no metadata: leave it out", name))
		}
	}
	q := r.URL.Query()
	body := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return refusal(http.StatusBadRequest, "the body is no gzip: "+err.Error())
		}
		body = unzipped
	default:
		return refusal(http.StatusBadRequest, fmt.Sprintf("a body in the encoding %q is not taken: it may be gzip", encoding))
	}
	files := []written{}
	store := func(asked string, content io.Reader) error {
		p, err := t.path(q.Get("username"), asked)
		if err != nil {
			return err
		}
		file := writtenTo(p)
		if slices.Contains(files, file) {
			return refusal(http.StatusBadRequest, fmt.Sprintf("two files of the request have the path '%s'", file.Path))
		}
		files = append(files, file)
		return s.store(content, r, t, p)
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == "application/octet-stream" && q.Get("path") == "":
		return refusal(http.StatusBadRequest, "path is missing")
	case kind == "application/octet-stream":
		if err := store(q.Get("path"), body); err != nil {
			return err
		}
	case kind != "multipart/form-data":
		return refusal(http.StatusBadRequest, "the body is neither multipart/form-data nor application/octet-stream")
	default:
		if err := eachFile(multipart.NewReader(body, params["boundary"]), q.Get("path"), store); err != nil {
			return err
		}
	}
	send(w, http.StatusOK, files)
	return nil
}

// eachFile stores the files of a form as they come, at a path, or at those that they are named after.
func eachFile(form *multipart.Reader, at string, store func(p string, r io.Reader) error) error {
	for n := 0; ; n++ {
		part, err := form.NextPart()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return refusal(http.StatusBadRequest, "the body is no form: "+err.Error())
		case n >= maxUploads:
			return refusal(http.StatusBadRequest, fmt.Sprintf("the form has more than %d parts: upload the files in several requests", maxUploads))
		case part.FormName() != "file":
			continue
		}
		// Its FileName is only what follows the last slash.
		_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		p := cmp.Or(at, params["filename"])
		if p == "" {
			return refusal(http.StatusBadRequest, "path is missing: neither the request nor the file has one")
		}
		if err := store(p, part); err != nil {
			return err
		}
	}
}

// A source is the content of a file that is to be written. It fills what it is asked for, so that a small file is written at once, however it comes.
type source struct {
	r   io.Reader
	n   int64
	err error
}

func (s *source) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = s.r.Read(p[n:])
		n += m
	}
	s.n += int64(n)
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// store writes a file. A link at its path is followed, as programs do.
func (s *Server) store(r io.Reader, req *http.Request, t *target, p string) error {
	ctx, links := req.Context(), newResolver(t.sandbox)
	i, err := t.sandbox.Stat(ctx, p)
	if err == nil && i.Mode&fs.ModeSymlink != 0 {
		p, i, err = links.resolve(ctx, p)
	}
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isNew:
		return err
	case i.IsDir():
		return refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is a directory", valid(p)))
	}
	seen := t.live.watchers.expect(ctx, links, p)
	in := &source{r: r}
	if isNew {
		// Who watches the directory counts on three events: it is made, is given to its user, and is written to.
		if err := t.sandbox.WriteFileFrom(ctx, p, strings.NewReader(""), newFile); err != nil {
			return err
		}
		if err := t.sandbox.Chmod(ctx, p, newFile); err != nil {
			return err
		}
	}
	err = t.sandbox.WriteFileFrom(ctx, p, in, newFile)
	switch {
	case in.err != nil && ctx.Err() == nil:
		return refusal(http.StatusBadRequest, fmt.Sprintf("the content of '%s' did not come whole: %v", valid(p), in.err))
	case err != nil:
		return err
	case in.n > 0:
		seen(filesystem.EventType_EVENT_TYPE_WRITE)
	case isNew:
		seen(filesystem.EventType_EVENT_TYPE_CHMOD)
	}
	return nil
}

// newFile are the permissions of a new file.
const newFile = 0o644

// compose joins files to one, and removes them.
func (s *Server) compose(w http.ResponseWriter, r *http.Request, t *target) error {
	var in struct {
		Sources     []string `json:"source_paths"`
		Destination string   `json:"destination"`
		Username    string   `json:"username"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessage)).Decode(&in); err != nil {
		return refusal(http.StatusBadRequest, "the body is not what this request takes: "+err.Error())
	}
	if len(in.Sources) == 0 || len(in.Sources) > maxUploads || in.Destination == "" {
		return refusal(http.StatusBadRequest, fmt.Sprintf("a destination and 1 to %d source_paths are needed", maxUploads))
	}
	to, err := t.path(in.Username, in.Destination)
	if err != nil {
		return err
	}
	links := newResolver(t.sandbox)
	target, _, err := links.resolve(r.Context(), to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	sources := make([]string, len(in.Sources))
	for n, p := range in.Sources {
		if p, err = t.path(in.Username, p); err != nil {
			return err
		}
		real, i, err := links.resolve(r.Context(), p)
		switch {
		case err != nil:
			return err
		case !i.Mode.IsRegular():
			return refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is not a regular file", valid(p)))
		case real == target || slices.Contains(sources[:n], real): // it would be read while it is written, or after it was removed
			return refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is there twice", valid(p)))
		}
		sources[n] = real
	}
	joined, into := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		var err error
		for _, p := range sources {
			if err == nil {
				_, err = t.sandbox.ReadFileTo(r.Context(), p, into)
			}
		}
		into.CloseWithError(err)
	}()
	err = s.store(joined, r, t, to)
	joined.Close()
	<-read
	if err != nil {
		return err
	}
	for _, p := range sources {
		if err := t.sandbox.Remove(r.Context(), p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	send(w, http.StatusOK, writtenTo(to))
	return nil
}
