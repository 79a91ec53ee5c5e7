package store

import (
	"cmp"
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// scopes are all of them, in the order in which a key has them.
var scopes = []string{database.ScopeRead, database.ScopeWrite, database.ScopeAudit, database.ScopeAdmin}

// DefaultProject is the project of a key that names none.
const DefaultProject = "default"

// MaxKeys is how many keys a project has at most that are neither revoked nor past their end.
const MaxKeys = 100

// maxEnded is how many others it has, of which the newest are kept: what was done with them is in the audit log.
const maxEnded = 1000

// maxName is the longest name of a key or project.
const maxName = 64

const validNames = "use 1 to 64 of A-Z, a-z, 0-9 and ._-"

func invalidProject(name string) error {
	return fmt.Errorf("name %.80q of a project: %w: %s", name, backend.ErrInvalid, validNames)
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// complete fills in what n leaves out, and fails for what makes no sense.
func complete(n database.NewKey, now time.Time) (database.NewKey, error) {
	n.Project = cmp.Or(n.Project, DefaultProject)
	if !validName(n.Name) {
		return n, fmt.Errorf("name %.80q of a key: %w: %s", n.Name, backend.ErrInvalid, validNames)
	}
	if !validName(n.Project) {
		return n, invalidProject(n.Project)
	}
	var err error
	if n.Scopes, err = CompleteScopes(n.Scopes); err != nil {
		return n, err
	}
	if !n.Expires.IsZero() && !n.Expires.After(now) {
		return n, fmt.Errorf("expiry %s: %w: use a time that is to come", n.Expires.Format(time.RFC3339), backend.ErrInvalid)
	}
	return n, nil
}

// CompleteScopes returns scopes in their order, each once, and database.ScopeRead and database.ScopeWrite where none is given. It fails with backend.ErrInvalid.
func CompleteScopes(given []string) ([]string, error) {
	for _, s := range given {
		if !slices.Contains(scopes, s) {
			return nil, fmt.Errorf("scope %.80q: %w: use %s", s, backend.ErrInvalid, strings.Join(scopes, ", "))
		}
	}
	if len(given) == 0 {
		return []string{database.ScopeRead, database.ScopeWrite}, nil
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(given, s) }), nil
}

// CreateKey makes a key, and its project if there is none of that name. The secret is returned here and
// never again: the database has a digest of it. CreateKey fails with ErrKeyExists for a name in use, with
// service.ErrManyKeys where the project has MaxKeys, and with ErrBadKey where the key with which it is made cannot be used any more.
func (s *Store) CreateKey(ctx context.Context, n database.NewKey) (key database.Key, secret string, err error) {
	now := s.now()
	if n, err = complete(n, now); err != nil {
		return database.Key{}, "", err
	}
	err = s.write(ctx, "make a key", func(tx *sql.Tx) error {
		project, err := n.ProjectID, error(nil)
		if project == "" {
			project, err = projectID(ctx, tx, n.Project, now)
		} else { // as above, others wait here
			err = tx.QueryRowContext(ctx, "UPDATE projects SET name = name WHERE id = $1 RETURNING name", project).Scan(&n.Project)
		}
		if err == nil {
			err = makeRoom(ctx, tx, n, project, now)
		}
		if err != nil {
			return err
		}
		key = database.Key{
			Name: n.Name, Project: n.Project, ProjectID: project, Scopes: n.Scopes,
			Created: fromMicros(micros(now)), Expires: fromMicros(micros(n.Expires)),
		}
		key.ID, secret, err = insertKey(ctx, tx, key)
		return err
	})
	if err != nil {
		return database.Key{}, "", err
	}
	return key, secret, nil
}

// usable is the condition that a key is neither revoked nor past its end, at the time $1.
const usable = "revoked = 0 AND (expires = 0 OR expires > $1)"

// makeRoom fails where a project may not have one key more, or not by this maker. It drops those that ended long ago.
func makeRoom(ctx context.Context, tx *sql.Tx, n database.NewKey, project string, now time.Time) error {
	var count, makers int
	const find = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN id = $3 THEN 1 ELSE 0 END), 0) FROM keys WHERE " + usable + " AND project = $2"
	if err := tx.QueryRowContext(ctx, find, micros(now), project, n.Maker).Scan(&count, &makers); err != nil {
		return err
	}
	switch {
	case n.Maker != "" && makers == 0:
		return ErrBadKey
	case count >= MaxKeys:
		return fmt.Errorf("%w: project %s has %d: revoke one first", service.ErrManyKeys, n.Project, count)
	}
	const drop = `DELETE FROM keys WHERE id IN (SELECT id FROM (
		SELECT id, ROW_NUMBER() OVER (ORDER BY created DESC, id DESC) AS n FROM keys WHERE NOT (` + usable + `) AND project = $2
	) AS ended WHERE n > $3)`
	_, err := tx.ExecContext(ctx, drop, micros(now), project, maxEnded)
	return err
}

// Project returns the id of the project of that name, which is made if there is none.
func (s *Store) Project(ctx context.Context, name string) (id string, err error) {
	if !validName(name) {
		return "", invalidProject(name)
	}
	now := s.now()
	err = s.write(ctx, "make a project", func(tx *sql.Tx) error {
		id, err = projectID(ctx, tx, name, now)
		return err
	})
	return id, err
}

// projectID returns the id of the project of that name, which it makes if need be. Until the transaction ends, others wait here for the project: what
// one counts of it stays true.
func projectID(ctx context.Context, tx *sql.Tx, name string, now time.Time) (id string, err error) {
	const insert = "INSERT INTO projects (id, name, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id"
	err = tx.QueryRowContext(ctx, insert, hex.EncodeToString(randomBytes(16)), name, micros(now)).Scan(&id)
	return id, err
}

// idTries is how often an id is drawn: two keys in a million million have the same.
const idTries = 5

// insertKey gives the key an id and a secret.
func insertKey(ctx context.Context, tx *sql.Tx, k database.Key) (id, secret string, err error) {
	const insert = `INSERT INTO keys (id, project, name, digest, scopes, created, expires, revoked)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT DO NOTHING`
	for range idTries {
		id, secret = newSecret()
		n, err := affected(ctx, tx, insert, id, k.ProjectID, k.Name, digest(secret), strings.Join(k.Scopes, " "), micros(k.Created), micros(k.Expires))
		if n == 1 || err != nil {
			return id, secret, err
		}
		var other string
		err = tx.QueryRowContext(ctx, "SELECT id FROM keys WHERE project = $1 AND name = $2 AND revoked = 0", k.ProjectID, k.Name).Scan(&other)
		switch {
		case err == nil:
			return "", "", fmt.Errorf("%w: project %s has a key %s, of id %s: choose another name, or revoke that key", ErrKeyExists, k.Project, k.Name, other)
		case !errors.Is(err, sql.ErrNoRows):
			return "", "", err
		}
	}
	return "", "", fmt.Errorf("no id was free in %d tries", idTries)
}

const selectKeys = `SELECT k.id, k.name, p.name, p.id, k.scopes, k.created, k.expires, k.revoked, k.digest
	FROM keys k JOIN projects p ON p.id = k.project`

// selected returns the keys that a query selects, and their digests.
func selected(ctx context.Context, db querier, where string, args ...any) (keys []database.Key, digests []string, err error) {
	err = rows(ctx, db, func(rows *sql.Rows) error {
		var k database.Key
		var list, sum string
		var created, expires, revoked int64
		err := rows.Scan(&k.ID, &k.Name, &k.Project, &k.ProjectID, &list, &created, &expires, &revoked, &sum)
		k.Scopes = strings.Fields(list)
		k.Created, k.Expires, k.Revoked = fromMicros(created), fromMicros(expires), fromMicros(revoked)
		keys, digests = append(keys, k), append(digests, sum)
		return err
	}, selectKeys+" "+where, args...)
	return keys, digests, err
}

// Keys returns all keys by project and name, also those that are revoked or expired; of one name the
// oldest is first.
func (s *Store) Keys(ctx context.Context) ([]database.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	keys, _, err := selected(ctx, s.db, "")
	if err != nil {
		return nil, s.failed("list the keys", err)
	}
	slices.SortFunc(keys, func(a, b database.Key) int { // in the same order whatever the collation of the database
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// ProjectKeys returns keys of a project, the newest first. It fails with ErrNoKey where the project has no key to come after.
func (s *Store) ProjectKeys(ctx context.Context, f database.KeyQuery) ([]database.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	where, args := "WHERE k.project = $1", []any{f.ProjectID}
	if f.After != "" {
		if !validName(f.After) {
			return nil, noKey(f.After)
		}
		after, _, err := selected(ctx, s.db, "WHERE k.project = $1 AND k.id = $2", f.ProjectID, f.After)
		switch {
		case err != nil:
			return nil, s.failed("list the keys", err)
		case len(after) == 0:
			return nil, noKey(f.After)
		}
		args = append(args, micros(after[0].Created), f.After)
		where += " AND (k.created, k.id) < ($2, $3)"
	}
	if f.Usable {
		args = append(args, micros(s.now()))
		where += fmt.Sprintf(" AND k.revoked = 0 AND (k.expires = 0 OR k.expires > $%d)", len(args))
	}
	args = append(args, f.Limit)
	keys, _, err := selected(ctx, s.db, fmt.Sprintf("%s ORDER BY k.created DESC, k.id DESC LIMIT $%d", where, len(args)), args...)
	if err != nil {
		return nil, s.failed("list the keys", err)
	}
	return keys, nil
}

// RevokeKey ends the use of a key at once and for ever. An id is looked for first, then a name among the
// keys that are not revoked. It fails with ErrNoKey when there is none, and with an error that is
// backend.ErrInvalid and lists the ids when several projects have the name. A key that is revoked already is
// returned as it is.
func (s *Store) RevokeKey(ctx context.Context, idOrName string) (database.Key, error) {
	return s.revoke(ctx, idOrName, "")
}

// RevokeProjectKey is RevokeKey for the id of a key of a project. To other projects' keys, nothing happens: the project has none of that id.
func (s *Store) RevokeProjectKey(ctx context.Context, projectID, id string) (database.Key, error) {
	return s.revoke(ctx, id, projectID)
}

// revoke revokes a key of an id or name; of a project, if one is given, by its id.
func (s *Store) revoke(ctx context.Context, idOrName, project string) (key database.Key, err error) {
	if !validName(idOrName) {
		return database.Key{}, noKey(idOrName)
	}
	const revoke = "UPDATE keys SET revoked = $1 WHERE id = $2 AND revoked = 0 AND ($3 = '' OR project = $3)"
	err = s.write(ctx, "revoke a key", func(tx *sql.Tx) error {
		id := idOrName
		if project == "" {
			if id, err = findKey(ctx, tx, idOrName); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, revoke, micros(s.now()), id, project); err != nil {
			return err
		}
		keys, _, err := selected(ctx, tx, "WHERE k.id = $1 AND ($2 = '' OR k.project = $2)", id, project)
		switch {
		case err != nil:
			return err
		case len(keys) == 0:
			return noKey(idOrName)
		}
		key = keys[0]
		return nil
	})
	return key, err
}

func noKey(idOrName string) error {
	if id, ok := parseSecret(idOrName); ok { // which is not repeated
		return fmt.Errorf("%w: a secret is given: use the id in it, %s", ErrNoKey, id)
	}
	return fmt.Errorf("%w: none has the id or name %.80q", ErrNoKey, idOrName)
}

// findKey returns the id of the key that RevokeKey is about.
func findKey(ctx context.Context, tx *sql.Tx, idOrName string) (string, error) {
	keys, _, err := selected(ctx, tx, "WHERE k.id = $1", idOrName)
	if err == nil && len(keys) == 0 {
		keys, _, err = selected(ctx, tx, "WHERE k.name = $1 AND k.revoked = 0 ORDER BY k.id", idOrName)
	}
	switch {
	case err != nil:
		return "", err
	case len(keys) == 0:
		return "", noKey(idOrName)
	case len(keys) == 1:
		return keys[0].ID, nil
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, fmt.Sprintf("%s (project %s)", k.ID, k.Project))
	}
	return "", fmt.Errorf("name %q: %w: several projects have a key of that name: use an id: %s", idOrName, backend.ErrInvalid, strings.Join(ids, ", "))
}

// Authenticate returns the key of a secret, or ErrBadKey. It asks the database each time, so that a key
// that another process has revoked is refused from then on.
func (s *Store) Authenticate(ctx context.Context, secret string) (database.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	id, ok := parseSecret(secret)
	if !ok {
		return database.Key{}, ErrBadKey
	}
	keys, digests, err := selected(ctx, s.db, "WHERE k.id = $1", id)
	if err != nil {
		return database.Key{}, s.failed("look for a key", err)
	}
	given := []byte(digest(secret))
	now := s.now()
	for i, k := range keys { // one at most
		if subtle.ConstantTimeCompare(given, []byte(digests[i])) == 1 && k.Usable(now) {
			return k, nil
		}
	}
	return database.Key{}, ErrBadKey
}
