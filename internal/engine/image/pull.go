package image

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// pull fetches an image that the engine does not have.
func (s *Store) pull(ctx context.Context, name string, progress func(backend.Progress)) (Image, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil || strings.HasPrefix(name, "sha256:") {
		return Image{}, fmt.Errorf("image %s: the engine has no image of that id: %w", name, backend.ErrImageNotFound)
	}
	full := reference.TagNameOnly(named).String()
	return s.once(ctx, "pull "+full, progress, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
		end := backend.BeginStep(report, "pull", full)
		err := s.fetch(ctx, full, report)
		end(err)
		if err != nil {
			return Image{}, err
		}
		img, found, err := s.usable(ctx, full)
		if err == nil && !found {
			err = fmt.Errorf("image %s: the engine pulled it without an error and does not have it: it was removed meanwhile, or its store is broken: %w", full, backend.ErrImageNotFound)
		}
		if err != nil {
			if found {
				img.Made = true
				_, dropErr := s.Remove(context.WithoutCancel(ctx), img)
				err = joined(err, dropErr)
			}
			return Image{}, err
		}
		img.Ref, img.Made = reference.FamiliarString(reference.TagNameOnly(named)), true
		return img, nil
	})
}

func (s *Store) fetch(ctx context.Context, full string, report func(backend.Progress)) error {
	var options client.ImagePullOptions
	if s.Auth != nil {
		auth, err := s.Auth(ctx, full)
		if err != nil {
			return fmt.Errorf("image %s: credentials for its registry: %w", full, err)
		}
		options.RegistryAuth = auth
	}
	res, err := s.Client.ImagePull(ctx, full, options)
	if err != nil {
		return pullError(ctx, full, err)
	}
	defer res.Close()
	m := newMeter(full, report)
	if err := eachMessage(res, m.see); err != nil {
		return pullError(ctx, full, err)
	}
	m.send()
	return nil
}

// advice finds, by an engine's message, what a failed pull means and what can be done. The
// first that fits counts. Engines give no codes for most of these.
var advice = []struct {
	texts []string
	kind  error
	do    string
}{
	{[]string{"verification failed", "did not match", "does not match", "unexpected commit digest", "failed size validation", "invalid checksum"}, backend.ErrImageInvalid,
		"what the registry sent is not what it says it is: push the image again, or use another registry"},
	{[]string{"no matching manifest", "no match for platform", "no image found in image index"}, backend.ErrImageInvalid,
		"the image is not offered for the engine's platform: use one that is"},
	{[]string{"unauthorized", "denied", "authentication required", "no basic auth credentials", "invalid username/password"}, backend.ErrImageNotFound,
		"the registry refuses access: check the name, and log in with `docker login` or `podman login`"},
	{[]string{"not found", "manifest unknown", "name unknown", "does not exist"}, backend.ErrImageNotFound,
		"check its name and tag, or build it"},
	{[]string{"connection refused", "no such host", "timeout", "dial tcp", "server gave http response"}, backend.ErrImageNotFound,
		"the engine cannot reach the registry: check the engine's network, proxy and registry settings"},
}

func pullError(ctx context.Context, full string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("pull image %s: %w", full, context.Cause(ctx))
	}
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("pull image %s: %w", full, err)
	}
	text := clean(err.Error())
	low := strings.ToLower(text)
	for _, a := range advice {
		for _, w := range a.texts {
			if strings.Contains(low, w) {
				return errclass.Errorf(a.kind, "pull image %s: %s: %s", full, a.do, text)
			}
		}
	}
	return errclass.Errorf(backend.ErrImageNotFound, "pull image %s: %s", full, text)
}

const (
	maxLine = 1 << 20 // bytes of one message of an engine
	maxText = 2000    // bytes of foreign text in an error
)

// A message is one line of what an engine says while it pulls, loads or builds. The
// text in it comes from registries and programs.
type message struct {
	Stream   string `json:"stream"`
	Status   string `json:"status"`
	ID       string `json:"id"`
	Error    string `json:"error"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// An engineError is a failure with the engine's message, or a registry's that it passes on.
type engineError struct{ text string }

func (e engineError) Error() string { return e.text }

// eachMessage calls fn for every message until the stream ends. A message that reports a
// failure ends it with an engineError.
func eachMessage(r io.Reader, fn func(message)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("the engine's answer is not understood (%w): %s", err, clean(string(line)))
		}
		if text := m.ErrorDetail.Message; text != "" {
			return engineError{clean(text)}
		}
		if m.Error != "" {
			return engineError{clean(m.Error)}
		}
		fn(m)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("the engine's answer has a line of over %d bytes", maxLine)
	}
	return lines.Err()
}

// clean makes foreign text fit for an error: short, and harmless on a terminal.
func clean(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strings.TrimSpace(termsafe.String(s))
}

const (
	// reportEvery keeps a fast line from spending its time on reports.
	reportEvery = 50 * time.Millisecond
	// maxParts is how many layers are counted; an image has at most 127.
	maxParts = 1024
)

// A meter adds up the bytes of the layers that a pull reports. It is used by one
// goroutine.
type meter struct {
	name   string
	report func(backend.Progress)
	parts  map[string]part
	last   time.Time
}

type part struct{ current, total int64 }

func newMeter(name string, report func(backend.Progress)) *meter {
	m := &meter{name: name, report: report, parts: map[string]part{}}
	m.send()
	return m
}

// see takes in a message. The same bytes are reported again while they are unpacked:
// only the download counts.
func (m *meter) see(msg message) {
	p, known := m.parts[msg.ID]
	switch {
	case msg.ID == "":
		return
	case msg.Status == "Downloading" && msg.Progress.Total >= 0 && msg.Progress.Current >= 0:
		if !known && len(m.parts) == maxParts {
			return
		}
		p.total = msg.Progress.Total
		p.current = max(p.current, msg.Progress.Current) // a part that is tried again begins anew
	case known && (msg.Status == "Download complete" || msg.Status == "Pull complete"):
		p.current = max(p.current, p.total)
	default:
		return
	}
	m.parts[msg.ID] = p
	if time.Since(m.last) >= reportEvery {
		m.send()
	}
}

// send reports the sum. It is also called once after the last message.
func (m *meter) send() {
	m.last = time.Now()
	var sum part
	for _, p := range m.parts {
		sum.current = plus(sum.current, p.current)
		sum.total = plus(sum.total, max(p.total, p.current))
	}
	m.report(backend.Progress{Stage: "pull", Message: m.name, Current: sum.current, Total: sum.total})
}

// plus adds without overflow what is not negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
