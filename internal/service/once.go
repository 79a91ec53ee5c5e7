package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// ErrRepeated is of a request that repeats another's key, and cannot be answered as that was.
var ErrRepeated = errors.New("idempotency")

// A doing is what is kept of a request with a key. It has an Answer once there is one.
type doing struct {
	Request string          `json:"request"` // a digest that says nothing of the request to who does not know the key
	Answer  json.RawMessage `json:"answer,omitempty"`
}

// Once does what a request of a project asks for, unless one of the same operation, sandbox and key has done it within a day: then it returns that one's
// answer. It fails with ErrRepeated where the request is another one, or the first is not answered yet. What fails can be asked for again with its key: do must leave
// nothing behind then. A request without a key is always done.
func Once[T any](ctx context.Context, s *Service, project, sandbox, operation, key string, request any, do func(context.Context) (T, error)) (answer T, repeated bool, err error) {
	if key == "" {
		answer, err = do(ctx)
		return answer, false, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return answer, false, err
	}
	name, d := "request/"+digest(operation, key), doing{Request: digest(key, string(body))}
	data, err := json.Marshal(d)
	if err != nil {
		return answer, false, err
	}
	added, err := s.records.AddRecord(ctx, project, sandbox, name, data)
	if err != nil {
		return answer, false, err
	}
	if !added {
		answer, err = repeat[T](ctx, s, project, sandbox, name, d.Request)
		return answer, true, err
	}
	answer, err = do(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime) // the client may have gone away
	defer cancel()
	if err != nil {
		return answer, false, errors.Join(err, s.records.RemoveRecord(after, project, sandbox, name))
	}
	if d.Answer, err = json.Marshal(answer); err == nil {
		data, err = json.Marshal(d)
	}
	if err == nil {
		err = s.records.PutRecord(after, project, sandbox, name, false, data)
	}
	if err != nil { // it is done nevertheless, and not done again
		s.cfg.Log.Error("the answer to a request with a key could not be kept", "operation", operation, "error", err)
	}
	return answer, false, nil
}

// recordTime bounds how long it may take to keep an answer.
const recordTime = 30 * time.Second

// repeat returns the answer to the request that was the first with its key.
func repeat[T any](ctx context.Context, s *Service, project, sandbox, name, request string) (answer T, err error) {
	data, _, err := s.records.Record(ctx, project, sandbox, name)
	if err != nil {
		return answer, fmt.Errorf("the first request with this key has just ended: %w", errclass.Of(ErrRepeated, err))
	}
	var d doing
	if err := json.Unmarshal(data, &d); err != nil {
		return answer, fmt.Errorf("read what is kept of a request: %w", err)
	}
	switch {
	case d.Request != request:
		return answer, fmt.Errorf("Idempotency-Key: %w: another request was sent with this key: use a new one for each", ErrRepeated)
	case len(d.Answer) == 0:
		return answer, fmt.Errorf("Idempotency-Key: %w: the first request with this key is under way, or its server was killed: ask again, or look at what there is and use a new key", ErrRepeated)
	}
	return answer, json.Unmarshal(d.Answer, &answer)
}

// digest is one of texts, the first of which has no NUL.
func digest(a, b string) string {
	sum := sha256.Sum256([]byte(a + "\x00" + b))
	return hex.EncodeToString(sum[:])
}
