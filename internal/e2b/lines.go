package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/service"
)

// A record is a line of the answer: one JSON object, whose key type says what it is.
type record map[string]any

// lines are the answer to a request to run code.
type lines struct {
	control *http.ResponseController
	cancel  func() // ends the execution, once its client is gone

	mu sync.Mutex
	w  io.Writer
}

// send sends lines at once: clients read what comes together as whole lines. Without any it sends the answer's head. The code's output waits for the
// client, for as long as that may take for a piece of the answer.
func (l *lines) send(list ...record) {
	var text []byte
	for _, one := range list {
		b, err := json.Marshal(one)
		if err != nil { // all that is raw has been checked
			b = []byte(`{"type":"error","name":"ServerError","value":"a result could not be written","traceback":""}`)
		}
		text = append(ascii(text, b), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(text)
	if err == nil {
		err = l.control.Flush()
	}
	if err != nil {
		l.cancel()
	}
}

// keepAlive sends a line now and then until ctx ends.
func (l *lines) keepAlive(ctx context.Context) *sync.WaitGroup {
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(keepalive)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.send(record{"type": "keepalive"})
			case <-ctx.Done():
				return
			}
		}
	})
	return &group
}

// ascii appends JSON in which every character is ASCII: clients may decode a character's bytes apart.
func ascii(to, text []byte) []byte {
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
			to = append(to, byte(r))
		case r > 0xffff:
			r -= 0x10000
			to = fmt.Appendf(to, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			to = fmt.Appendf(to, `\u%04x`, r)
		}
	}
	return to
}

const (
	// lineTime is how long the rest of a line may take, before what there is of it is sent: programs write lines in parts.
	lineTime = 50 * time.Millisecond
	// longestPart bounds what waits for the rest of its line.
	longestPart = 16 << 10
)

// An outputStream sends output as lines of the answer, one for each of its own.
type outputStream struct {
	out  *lines
	kind string

	mu    sync.Mutex
	part  []byte // of a line, or of a character, whose rest has not come
	timer *time.Timer
	ended bool
}

// Write implements io.Writer.
func (s *outputStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part = append(s.part, p...)
	s.send(bytes.LastIndexByte(s.part, '\n') + 1)
	if len(s.part) > longestPart {
		s.sendPart()
	}
	if len(s.part) > 0 && s.timer == nil {
		s.timer = time.AfterFunc(lineTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.timer = nil; !s.ended {
				s.sendPart()
			}
		})
	}
	return len(p), nil
}

// sendPart sends a part of a line, but for that of a character.
func (s *outputStream) sendPart() { s.send(service.WholeRunes(s.part)) }

// send sends that many bytes.
func (s *outputStream) send(n int) {
	var list []record
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for one := range strings.Lines(string(s.part[:n])) {
		list = append(list, record{"type": s.kind, "text": one, "timestamp": now})
	}
	if list != nil {
		s.out.send(list...)
	}
	s.part = append(s.part[:0], s.part[n:]...)
}

// end sends what is left. Nothing is sent later.
func (s *outputStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.send(len(s.part))
}
