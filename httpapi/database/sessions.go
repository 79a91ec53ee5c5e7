package database

import (
	"context"
	"time"
)

// A Session is one of a browser. It is of a key, or of a person whom an issuer knows.
type Session struct {
	// Caller is who has logged in.
	Caller Caller
	// Issuer is a text that stands for the issuer, and its grants, by which a person was let in. It is empty in a session of a key.
	Issuer string
	// Begun is when the browser was logged in, and End when it has to do so again at the latest.
	Begun, End time.Time
}

// Sessions keep the sessions of browsers at the console, also for servers that are started later, or share them. Each has the digest of its cookie for an id.
// Methods may be called concurrently.
type Sessions interface {
	// AddSession keeps a session. The oldest end where there are more than 16 of its caller's KeyID, or 1000 of the project.
	AddSession(ctx context.Context, id string, s Session) error
	// UseSession returns a session, and notes that it is used; that of a key has the caller that its key stands for now. It fails with fs.ErrNotExist where there
	// is none, its End has come, it was not used for four hours, or its key has been revoked or has ended.
	UseSession(ctx context.Context, id string) (Session, error)
	// EndSessions ends those sessions that are there.
	EndSessions(ctx context.Context, ids []string) error
}
