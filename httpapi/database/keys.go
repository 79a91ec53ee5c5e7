package database

import (
	"context"
	"slices"
	"time"
)

// The scopes are what a caller may do. None includes another.
const (
	ScopeRead  = "read"  // look at sandboxes and their files
	ScopeWrite = "write" // make, use and remove sandboxes, and run code
	ScopeAudit = "audit" // read the audit log of the project
	ScopeAdmin = "admin" // list, make and revoke keys of the project, with no more than it has itself
)

// A Caller is who sends a request.
type Caller struct {
	// Project is whose sandboxes it may use. It is written on each of them, and who has one of its keys sees it in the console only.
	Project string
	// KeyID and KeyName name its key in the audit log.
	KeyID, KeyName string
	// Scopes are what it may do.
	Scopes []string
	// Expires is when its key ends; zero: never. Keys that it makes end no later.
	Expires time.Time
}

// Has reports whether a caller has a scope.
func (c Caller) Has(scope string) bool { return slices.Contains(c.Scopes, scope) }

// A Key is an API key, without its secret. Times are in UTC, to the microsecond.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Project   string    `json:"project"`
	ProjectID string    `json:"project_id"` // random hex, which stays; sandboxes are labelled with it
	Scopes    []string  `json:"scopes"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	Revoked   time.Time `json:"revoked,omitzero"` // zero: it is not
}

// Caller is who sends requests with the key.
func (k *Key) Caller() Caller { return Caller{k.ProjectID, k.ID, k.Name, k.Scopes, k.Expires} }

// Usable reports whether a key is neither revoked nor past its end.
func (k *Key) Usable(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// NewKey says what key to make.
type NewKey struct {
	Name    string // 1 to 64 of A-Z, a-z, 0-9 and ._-; no other key of the project that is not revoked has it
	Project string // as a name; empty: the default one. It is made when a key first names it.
	// ProjectID, where it is set, is the project's in place of Project.
	ProjectID string
	Scopes    []string  // empty: ScopeRead and ScopeWrite
	Expires   time.Time // zero: never
	Maker     string    // id of the key with which it is made; empty: none. That key must still be one that can be used.
}

// A KeyQuery selects keys of a project.
type KeyQuery struct {
	ProjectID string
	Usable    bool   // only those that are neither revoked nor past their end
	After     string // only those that come after the key of this id; empty: all
	Limit     int    // of keys
}

// Keys make, list and revoke the API keys of projects. Methods may be called concurrently.
type Keys interface {
	// CreateKey makes a key, whose secret it returns here only. It fails with fs.ErrExist where another key of the project that is not revoked has the
	// name, with httpapi.ErrManyKeys where the project has as many as it may, and with httpapi.ErrUnknownKey where the key with which it is made cannot
	// be used any more.
	CreateKey(context.Context, NewKey) (key Key, secret string, err error)
	// ProjectKeys returns keys of a project, the newest first. It fails with llmsandbox.ErrNotFound where the project has no key to come after.
	ProjectKeys(context.Context, KeyQuery) ([]Key, error)
	// RevokeProjectKey ends the use of a key of a project, also of one that is revoked. It fails with llmsandbox.ErrNotFound, for keys of other projects as
	// for those that do not exist.
	RevokeProjectKey(ctx context.Context, projectID, id string) (Key, error)
}
