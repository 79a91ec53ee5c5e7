package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
)

// Labels of images. Their project can see and set them.
const (
	buildLabel = "e2b.build" // the id of the build that has made it; of a sandbox, the one that it is for
	setupLabel = "e2b.setup" // what the image has beside its files, as JSON; of a sandbox, that of the image that it began with
)

const (
	// maxBuilds bounds a project's builds that have not ended, and maxBuilt those that have and are still known.
	maxBuilds, maxBuilt = 8, 16
	// maxUploaded bounds the bytes that a project's builds have uploaded and not used up.
	maxUploaded = 1 << 30
	// maxFiles bounds how many files are uploaded for the builds of one template.
	maxFiles = 256
	// buildWait is how long a build may take to be started once it was asked for, and buildTime the most that it may take then.
	buildWait, buildTime = time.Hour, time.Hour
	// maxTags bounds the names of one build.
	maxTags = 16
	// maxLog bounds the bytes of a build's log, and maxEntries the entries of it in an answer.
	maxLog, maxEntries = 1 << 20, 100
)

// A setup is what a template has beside its files.
type setup struct {
	Env     map[string]string `json:"env,omitempty"`
	Workdir string            `json:"workdir,omitempty"`
	User    string            `json:"user,omitempty"`
	Start   string            `json:"start,omitempty"`
	Ready   string            `json:"ready,omitempty"`
	CPUs    int               `json:"cpus,omitempty"`
	Memory  int64             `json:"memory,omitempty"` // in MiB
}

// setupOf is the one in labels; one that cannot be read has nothing.
func setupOf(labels map[string]string) (has setup) {
	if text := labels[setupLabel]; text == "" || json.Unmarshal([]byte(text), &has) != nil {
		return setup{}
	}
	return has
}

func (has *setup) limits() llmsandbox.Limits {
	return llmsandbox.Limits{CPUs: float64(has.CPUs), Memory: has.Memory << 20}
}

// builds are those of all projects that the server knows.
type builds struct {
	mu  sync.Mutex
	all []*build // the oldest first
}

// A build is one of a template. What follows uploads is guarded by builds.mu.
type build struct {
	id, project, template string
	names                 []string // of the images that it makes
	setup                 setup    // what was asked for with it
	start                 chan *newBuild

	uploads *uploads
	status  string
	reason  *reason
	log     []logEntry
	logged  int // bytes
}

// The states of a build.
const (
	buildWaits  = "waiting"
	buildRuns   = "building"
	buildReady  = "ready"
	buildFailed = "error"
)

func (b *build) ended() bool { return b.status == buildReady || b.status == buildFailed }

// uploads are the files for builds of one template that have not ended: what SDKs send names the template and not the build.
type uploads struct {
	secret string // in the URL that they are sent to
	files  map[string]*os.File
	count  int // with those that are coming
	size   int64
}

// isHash reports whether a text is what SDKs call files that they upload.
func isHash(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}

type logEntry struct {
	Time    time.Time `json:"timestamp"`
	Message string    `json:"message"`
	Level   string    `json:"level"`
	Step    string    `json:"step,omitempty"`
}

type reason struct {
	Message string `json:"message"`
	Step    string `json:"step,omitempty"`
}

// A newBuild starts a build.
type newBuild struct {
	Image    string          `json:"fromImage"`
	Template string          `json:"fromTemplate"`
	Registry json.RawMessage `json:"fromImageRegistry"`
	Steps    []step          `json:"steps"`
	Start    string          `json:"startCmd"`
	Ready    string          `json:"readyCmd"`

	end func(status int, sandbox string) // notes what became of it
}

type step struct {
	Type string   `json:"type"`
	Args []string `json:"args"`
	Hash string   `json:"filesHash"`
}

// taggedNames are the names of the images for a template's name, which may have a tag, and more tags.
func taggedNames(name string, tags []string) (template string, names, all []string, err error) {
	template, tag, has := strings.Cut(name, ":")
	if has {
		all = append(all, tag)
	}
	all = append(all, tags...)
	if len(all) == 0 {
		all = []string{defaultTag[1:]}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxTags {
		return "", nil, nil, refusal(http.StatusBadRequest, fmt.Sprintf("tags: there are more than %d", maxTags))
	}
	if slices.Contains(ownTemplates, template) {
		return "", nil, nil, refusal(http.StatusBadRequest, fmt.Sprintf("name: '%s' is a template of the server's: choose another name", template))
	}
	for _, t := range all {
		n := imageName(template + ":" + t)
		if err := images.CheckName(n); err != nil {
			return "", nil, nil, err
		}
		names = append(names, n)
	}
	return template, names, all, nil
}

func (s *Server) requestBuild(_ context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Name    string   `json:"name"`
		Alias   string   `json:"alias"` // of older SDKs
		Tags    []string `json:"tags"`
		CPUs    int      `json:"cpuCount"`
		Memory  int64    `json:"memoryMB"`
		MinDisk int64    `json:"minFreeDiskMb"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	const most = 1 << 30 // in MiB, and CPUs: what is too much for this server is refused with the sandbox
	switch {
	case !s.service.Sandbox().WritableRoot || !s.service.HasImages():
		return 0, nil, errNoRoot
	case in.MinDisk != 0:
		return 0, nil, refusal(http.StatusBadRequest, "minFreeDiskMb: the disk of a sandbox is what the server gives it")
	case in.CPUs < 0 || in.Memory < 0 || in.CPUs > most || in.Memory > most:
		return 0, nil, refusal(http.StatusBadRequest, "cpuCount, memoryMB: there is no such sandbox")
	}
	template, names, tags, err := taggedNames(cmp.Or(in.Name, in.Alias), in.Tags)
	if err != nil {
		return 0, nil, err
	}
	for _, n := range names {
		switch i, err := s.service.Image(r.caller.Project, n); {
		case err == nil && i.Labels[buildLabel] == "":
			return 0, nil, refusal(http.StatusConflict, fmt.Sprintf("name: the project has an image %s, which was not built: choose another name", n))
		case err != nil && !errors.Is(err, llmsandbox.ErrImageNotFound):
			return 0, nil, err
		}
	}
	b := &build{
		id: newUUID(), project: r.caller.Project, template: template, names: names, setup: setup{CPUs: in.CPUs, Memory: in.Memory}, start: make(chan *newBuild, 1), status: buildWaits,
	}
	if err := s.builds.add(b); err != nil {
		return 0, nil, err
	}
	if err := s.background(func() { s.await(b) }); err != nil {
		s.builds.end(b, err.Error(), "")
		return 0, nil, err
	}
	return http.StatusAccepted, struct {
		Template string   `json:"templateID"`
		Build    string   `json:"buildID"`
		Public   bool     `json:"public"`
		Names    []string `json:"names"`
		Tags     []string `json:"tags"`
		Aliases  []string `json:"aliases"`
	}{template, b.id, false, []string{template}, tags, []string{template}}, nil
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// await waits until a build is started, and builds.
func (s *Server) await(b *build) {
	select {
	case in := <-b.start:
		s.build(b, in)
	case <-time.After(buildWait):
		s.builds.end(b, "the build was not started in time", "")
	case <-s.stopping.Done():
		s.builds.end(b, "the server is stopping", "")
	}
}

// add adds a build, which shares uploads with others of its template that have not ended.
func (bs *builds) add(b *build) error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var open, ended int
	for _, other := range slices.Backward(bs.all) {
		switch {
		case other.project != b.project:
		case other.ended():
			if ended++; ended >= maxBuilt {
				bs.all = slices.DeleteFunc(slices.Clone(bs.all), func(o *build) bool { return o == other })
			}
		default:
			if open++; other.template == b.template {
				b.uploads = other.uploads
			}
		}
	}
	if open >= maxBuilds {
		return refusal(http.StatusTooManyRequests, fmt.Sprintf("the project has %d builds that have not ended, which is the most: wait until one has", open))
	}
	if b.uploads == nil {
		b.uploads = &uploads{secret: rand.Text(), files: map[string]*os.File{}}
	}
	bs.all = append(bs.all, b)
	return nil
}

// find finds a build of a project's template.
func (bs *builds) find(project, template, id string) (*build, error) {
	for _, b := range bs.all {
		if b.project == project && b.template == template && b.id == id {
			return b, nil
		}
	}
	return nil, refusal(http.StatusNotFound, "there is no such build: builds are known for a while, until the server ends")
}

// end ends a build: where there is a message, it has failed.
func (bs *builds) end(b *build, message, step string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b.status = buildReady; message != "" {
		b.status, b.reason = buildFailed, &reason{valid(message), step}
	}
	if !slices.ContainsFunc(bs.all, func(o *build) bool { return o.uploads == b.uploads && !o.ended() }) {
		for _, f := range b.uploads.files {
			f.Close()
		}
		b.uploads.files = nil
	}
}

// note adds to a build's log.
func (bs *builds) note(b *build, level, step, message string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	const each = 100 // what an entry takes beside its message
	if b.logged > maxLog {
		return
	}
	if b.logged += len(message) + each; b.logged > maxLog {
		level, message = "warn", "the log is too long: the rest is left out"
	}
	b.log = append(b.log, logEntry{time.Now().UTC(), valid(message), level, step})
}

// requestUpload tells where a file of a build goes, unless it is there.
func (s *Server) requestUpload(_ context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	template, hash := r.PathValue("template"), r.PathValue("hash")
	if !isHash(hash) {
		return 0, nil, refusal(http.StatusBadRequest, "the hash of files is no SHA-256")
	}
	s.builds.mu.Lock()
	defer s.builds.mu.Unlock()
	for _, b := range s.builds.all {
		if b.project == r.caller.Project && b.template == template && b.status == buildWaits {
			to := url.URL{Scheme: s.cfg.Scheme, Host: r.Host, Path: "/templates/" + template + "/files/" + hash, RawQuery: "upload=" + b.uploads.secret}
			return http.StatusCreated, struct {
				Present bool   `json:"present"`
				URL     string `json:"url"`
			}{b.uploads.files[hash] != nil, to.String()}, nil
		}
	}
	return 0, nil, refusal(http.StatusNotFound, "there is no build of the template that waits for files")
}

// uploadForBuild takes a file for builds. The URL shows that requestUpload gave it.
func (s *Server) uploadForBuild(w http.ResponseWriter, r *http.Request) {
	if err := s.takeUpload(r); err != nil {
		answer(w, s.refusalOf(r.Context(), err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) takeUpload(r *http.Request) error {
	secret, hash, n := r.URL.Query().Get("upload"), r.PathValue("hash"), r.ContentLength
	var to *uploads
	var project string
	taken := int64(0)
	if err := func() error {
		s.builds.mu.Lock()
		defer s.builds.mu.Unlock()
		at := slices.IndexFunc(s.builds.all, func(b *build) bool { return b.uploads.secret == secret && !b.ended() })
		if at < 0 || r.PathValue("template") != s.builds.all[at].template || !isHash(hash) {
			return refusal(http.StatusForbidden, "the URL is of no build that waits for files")
		}
		project, to = s.builds.all[at].project, s.builds.all[at].uploads
		counted := map[*uploads]bool{}
		for _, b := range s.builds.all {
			if b.project == project && !b.ended() && !counted[b.uploads] {
				counted[b.uploads] = true
				taken += b.uploads.size
			}
		}
		switch {
		case n < 0:
			return refusal(http.StatusLengthRequired, "the header Content-Length is missing")
		case taken+n > maxUploaded || to.count >= maxFiles:
			return refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("the files of the project's builds have more than %d bytes together, or are more than %d", maxUploaded, maxFiles))
		}
		to.count++
		to.size += n
		return nil
	}(); err != nil {
		return err
	}
	err := s.cfg.Count(project)
	var f *os.File
	if err == nil {
		f, err = s.service.Scratch(project)
	}
	if err == nil {
		if _, copied := io.Copy(f, r.Body); copied != nil {
			err = refusal(http.StatusBadRequest, "the body did not come")
		}
	}
	s.builds.mu.Lock()
	defer s.builds.mu.Unlock()
	switch {
	case err == nil && to.files == nil:
		err = refusal(http.StatusForbidden, "the builds that the file is for have ended")
	case err == nil && to.files[hash] == nil:
		to.files[hash] = f
		return nil
	}
	to.count-- // it is there already, or not kept
	to.size -= n
	if f != nil {
		f.Close()
	}
	return err
}

// startBuild starts a build that was asked for, with what it is made of.
func (s *Server) startBuild(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in newBuild
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	if err := in.check(); err != nil {
		return 0, nil, err
	}
	s.builds.mu.Lock()
	b, err := s.builds.find(r.caller.Project, r.PathValue("template"), r.PathValue("build"))
	if err == nil && b.status != buildWaits {
		err = refusal(http.StatusBadRequest, "the build was started before")
	}
	for i, st := range in.Steps {
		if err == nil && st.Type == "COPY" && b.uploads.files[st.Hash] == nil {
			err = refusal(http.StatusBadRequest, fmt.Sprintf("steps: the files of step %d were not uploaded", i+1))
		}
	}
	if err == nil {
		b.status = buildRuns
	}
	s.builds.mu.Unlock()
	if err != nil {
		return 0, nil, err
	}
	if in.end, err = s.cfg.Begin(ctx, r.caller, "built-template", "", false); err != nil {
		s.builds.mu.Lock()
		defer s.builds.mu.Unlock()
		b.status = buildWaits
		return 0, nil, err
	}
	b.start <- &in
	return http.StatusAccepted, nil, nil
}

func (s *Server) buildStatus(_ context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return 0, nil, err
	}
	offset, err := strconv.Atoi(cmp.Or(q.Get("logsOffset"), "0"))
	if err != nil || offset < 0 {
		return 0, nil, refusal(http.StatusBadRequest, "logsOffset: use a number of entries")
	}
	if level := q.Get("level"); level != "" && level != "debug" {
		return 0, nil, refusal(http.StatusBadRequest, "level: this server sends the whole log")
	}
	s.builds.mu.Lock()
	defer s.builds.mu.Unlock()
	b, err := s.builds.find(r.caller.Project, r.PathValue("template"), r.PathValue("build"))
	if err != nil {
		return 0, nil, err
	}
	offset = min(offset, len(b.log))
	return http.StatusOK, struct {
		Template string     `json:"templateID"`
		Build    string     `json:"buildID"`
		Status   string     `json:"status"`
		Lines    []string   `json:"logs"` // which is for older SDKs, and is empty at E2B, too
		Log      []logEntry `json:"logEntries"`
		Reason   *reason    `json:"reason,omitempty"`
	}{b.template, b.id, b.status, []string{}, append([]logEntry{}, b.log[offset:min(offset+limit, len(b.log))]...), b.reason}, nil
}

// taggedImages are a project's images that are a template, with their tags.
func (s *Server) taggedImages(project, template string) (tagged map[string]images.Image, err error) {
	all, err := s.service.Images(project)
	tagged = map[string]images.Image{}
	for _, i := range all {
		name, tag, _ := strings.Cut(i.Name, ":")
		if name == template {
			tagged[cmp.Or(tag, defaultTag[1:])] = i
		}
	}
	return tagged, err
}

// aboutTemplate tells whether there is a template, at aliases/NAME, or which tags it has, at NAME/tags.
func (s *Server) aboutTemplate(_ context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	template, what := r.PathValue("template"), r.PathValue("what")
	if template == "aliases" {
		template, what = what, template
	}
	name, tag, _ := strings.Cut(template, ":")
	tagged, err := s.taggedImages(r.caller.Project, name)
	if err != nil {
		return 0, nil, err
	}
	_, has := tagged[tag]
	there := slices.Contains(ownTemplates[1:], name)
	if !there && isTemplate(name) {
		_, err = llmsandbox.Options{Template: name}.WithTemplate()
		there = err == nil
	}
	switch {
	case what != "aliases" && what != "tags":
		return 0, nil, refusal(http.StatusNotImplemented, "this server does not have that")
	case !has && (tag != "" || len(tagged) == 0 && !there):
		return 0, nil, noTemplate(template)
	case what == "aliases":
		return http.StatusOK, struct {
			Template string `json:"templateID"`
			Public   bool   `json:"public"`
		}{template, false}, nil
	}
	type tagInfo struct {
		Tag     string    `json:"tag"`
		Build   string    `json:"buildID"`
		Created time.Time `json:"createdAt"`
	}
	list := []tagInfo{}
	for tag, i := range tagged {
		if id := i.Labels[buildLabel]; id != "" {
			list = append(list, tagInfo{tag, id, i.Created})
		}
	}
	slices.SortFunc(list, func(a, b tagInfo) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Tag, b.Tag)) })
	return http.StatusOK, list, nil
}

// assignTags gives what a build has made more tags.
func (s *Server) assignTags(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	from := imageName(in.Target)
	i, err := s.service.Image(r.caller.Project, from)
	if errors.Is(err, llmsandbox.ErrImageNotFound) || err == nil && i.Labels[buildLabel] == "" {
		return 0, nil, noTemplate(in.Target)
	}
	if err != nil {
		return 0, nil, err
	}
	template, _, _ := strings.Cut(from, ":")
	_, names, tags, err := taggedNames(template, in.Tags)
	if err == nil && len(in.Tags) == 0 {
		err = refusal(http.StatusBadRequest, "tags: there are none")
	}
	if err == nil {
		err = s.copyImage(ctx, r.caller.Project, from, names)
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, struct {
		Tags  []string `json:"tags"`
		Build string   `json:"buildID"`
	}{tags, i.Labels[buildLabel]}, nil
}

// copyImage gives an image more names, also those of others that were built.
func (s *Server) copyImage(ctx context.Context, project, from string, names []string) error {
	for _, n := range names {
		again, err := s.hasImage(project, n, buildLabel)
		if err == nil && n != from {
			err = s.service.CopyImage(ctx, project, from, n, again)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeTags removes what has tags of a template.
func (s *Server) removeTags(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	for _, tag := range in.Tags {
		err := s.service.RemoveImage(ctx, r.caller.Project, imageName(in.Name+":"+tag))
		if errors.Is(err, llmsandbox.ErrImageNotFound) {
			err = refusal(http.StatusNotFound, err.Error())
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return http.StatusNoContent, nil, nil
}
