package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// create makes a key that must be made.
func create(t *testing.T, s *Store, n database.NewKey) (database.Key, string) {
	t.Helper()
	k, secret, err := s.CreateKey(t.Context(), n)
	if err != nil {
		t.Fatalf("make key %+v: %v, want no error", n, err)
	}
	return k, secret
}

func TestCreateKey(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		for _, c := range []struct {
			name string
			new  database.NewKey
			want database.Key
		}{
			{"what is left out", database.NewKey{Name: "a"}, database.Key{Name: "a", Project: "default", Scopes: []string{database.ScopeRead, database.ScopeWrite}}},
			{"scopes in order, each once", database.NewKey{Name: "b", Project: "p", Scopes: []string{database.ScopeWrite, database.ScopeRead, database.ScopeWrite}},
				database.Key{Name: "b", Project: "p", Scopes: []string{database.ScopeRead, database.ScopeWrite}}},
			{"an end", database.NewKey{Name: "c", Scopes: []string{database.ScopeRead}, Expires: expires},
				database.Key{Name: "c", Project: "default", Scopes: []string{database.ScopeRead}, Expires: expires.Truncate(time.Microsecond).UTC()}},
			{"the name of another project's", database.NewKey{Name: "a", Project: "p"}, database.Key{Name: "a", Project: "p", Scopes: []string{database.ScopeRead, database.ScopeWrite}}},
			{"the longest names", database.NewKey{Name: strings.Repeat("x", 64), Project: strings.Repeat("Y", 64)},
				database.Key{Name: strings.Repeat("x", 64), Project: strings.Repeat("Y", 64), Scopes: []string{database.ScopeRead, database.ScopeWrite}}},
		} {
			before := time.Now().Truncate(time.Microsecond)
			got, secret := create(t, s, c.new)
			if got.Created.Before(before) || got.Created.After(time.Now()) {
				t.Errorf("%s: got created %s, want from %s on", c.name, got.Created, before)
			}
			if !regexp.MustCompile(`^lsb_`+got.ID+`_[a-z2-7]{52}$`).MatchString(secret) || len(got.ID) != 8 {
				t.Errorf("%s: got id %q and secret %q, want an id of 8 characters, and lsb_ID_ with 52", c.name, got.ID, secret)
			}
			c.want.ID, c.want.ProjectID, c.want.Created = got.ID, got.ProjectID, got.Created
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.name, diff)
			}
			again, err := s.Authenticate(t.Context(), secret)
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Errorf("%s: authenticated with %v, want no error; -want +got\n%s", c.name, err, diff)
			}
		}
	})
}

func TestKeysThatMakeNoSense(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		for name, n := range map[string]database.NewKey{
			"no name":             {},
			"long name":           {Name: strings.Repeat("x", 65)},
			"space in name":       {Name: "a b"},
			"NUL in name":         {Name: "a\x00"},
			"other letter":        {Name: "ä"},
			"no UTF-8":            {Name: "\xff"},
			"slash in project":    {Name: "a", Project: "a/b"},
			"long project":        {Name: "a", Project: strings.Repeat("x", 65)},
			"unknown scope":       {Name: "a", Scopes: []string{database.ScopeRead, "root"}},
			"two scopes in one":   {Name: "a", Scopes: []string{"read write"}},
			"it is over already":  {Name: "a", Expires: time.Now().Add(-time.Minute)},
			"it ends as it begun": {Name: "a", Expires: time.Unix(0, 0)},
		} {
			if k, secret, err := s.CreateKey(t.Context(), n); !errors.Is(err, backend.ErrInvalid) || secret != "" || k.ID != "" {
				t.Errorf("%s: got %+v, %v, want backend.ErrInvalid and nothing else", name, k, err)
			}
		}
		if keys, err := s.Keys(t.Context()); err != nil || len(keys) != 0 {
			t.Errorf("got %+v, %v, want no keys", keys, err)
		}
	})
}

func TestNamesOfKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		first, _ := create(t, s, database.NewKey{Name: "ci"})
		_, secret, err := s.CreateKey(t.Context(), database.NewKey{Name: "ci", Project: "default"})
		if !errors.Is(err, ErrKeyExists) || secret != "" || !strings.Contains(err.Error(), first.ID) {
			t.Errorf("a name in use: got %v, want ErrKeyExists with id %s", err, first.ID)
		}
		create(t, s, database.NewKey{Name: "CI"}) // another name
		if _, err := s.RevokeKey(t.Context(), "ci"); err != nil {
			t.Fatal(err)
		}
		second, _ := create(t, s, database.NewKey{Name: "ci"})
		if second.ProjectID != first.ProjectID || second.ID == first.ID {
			t.Errorf("got key %s of project %s, want another key of project %s", second.ID, second.ProjectID, first.ProjectID)
		}
	})
}

func TestKeysAreInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		var want []database.Key
		for _, n := range []database.NewKey{{Name: "B", Project: "Z"}, {Name: "a", Project: "Z"}, {Name: "Z", Project: "b"}, {Name: "_", Project: "b"}, {Name: "c", Project: "b"}} {
			k, _ := create(t, s, n)
			want = append(want, k)
		}
		revoked, err := s.RevokeKey(t.Context(), want[2].ID)
		if err != nil {
			t.Fatal(err)
		}
		want[2] = revoked
		got, err := s.Keys(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, want no error; -want +got\n%s", err, diff)
		}
	})
}

func TestRevokeKey(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		one, secretOne := create(t, s, database.NewKey{Name: "same", Project: "one"})
		two, secretTwo := create(t, s, database.NewKey{Name: "same", Project: "two"})
		create(t, s, database.NewKey{Name: one.ID, Project: "three"}) // an id comes before a name

		_, err := s.RevokeKey(t.Context(), "same")
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), one.ID+" (project one)") || !strings.Contains(err.Error(), two.ID+" (project two)") {
			t.Errorf("a name that two projects have: got %v, want backend.ErrInvalid with both ids", err)
		}
		for _, c := range []struct{ what, arg string }{{"an id", one.ID}, {"it once more", one.ID}} {
			got, err := s.RevokeKey(t.Context(), c.arg)
			if one.Revoked.IsZero() {
				one.Revoked = got.Revoked
			}
			if diff := cmp.Diff(one, got); err != nil || got.Revoked.IsZero() || diff != "" {
				t.Errorf("%s: got %v, want no error; -want +got\n%s", c.what, err, diff)
			}
		}
		if got, err := s.RevokeKey(t.Context(), "same"); err != nil || got.ID != two.ID {
			t.Errorf("a name that one project still has: got %s, %v, want %s", got.ID, err, two.ID)
		}
		for _, arg := range []string{"same", "", "none", "a\x00b", "\xff", strings.Repeat("x", 65), secretOne} {
			if _, err := s.RevokeKey(t.Context(), arg); !errors.Is(err, ErrNoKey) || strings.Contains(err.Error(), secretOne) {
				t.Errorf("%q: got %v, want ErrNoKey, which does not repeat a secret", arg, err)
			}
		}
		for _, secret := range []string{secretOne, secretTwo} {
			if _, err := s.Authenticate(t.Context(), secret); !errors.Is(err, ErrBadKey) {
				t.Errorf("a revoked key: got %v, want ErrBadKey", err)
			}
		}
	})
}

// Whatever is wrong with a secret, the answer is the same.
func TestBadKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		good, secret := create(t, s, database.NewKey{Name: "good"})
		revoked, revokedSecret := create(t, s, database.NewKey{Name: "revoked"})
		if _, err := s.RevokeKey(t.Context(), revoked.ID); err != nil {
			t.Fatal(err)
		}
		_, otherSecret := newSecret()
		last := "a"
		if strings.HasSuffix(secret, last) {
			last = "b"
		}
		for name, bad := range map[string]string{
			"empty": "", "an id": good.ID, "no prefix": secret[4:], "short": secret[:len(secret)-1], "long": secret + "a", "upper case": strings.ToUpper(secret),
			"of no key": otherSecret, "of another key": secretPrefix + good.ID + revokedSecret[len(secretPrefix)+idLen:], "the last character is another": secret[:len(secret)-1] + last,
			"revoked": revokedSecret, "NUL": secret[:len(secret)-1] + "\x00", "its digest": digest(secret), "a statement": "lsb_' OR 1=1" + secret[12:],
		} {
			if k, err := s.Authenticate(t.Context(), bad); err != ErrBadKey || k.ID != "" { // nothing is added to it
				t.Errorf("%s: got %+v, %v, want ErrBadKey itself", name, k, err)
			}
		}
		if k, err := s.Authenticate(t.Context(), secret); err != nil || k.ID != good.ID {
			t.Errorf("got %s, %v, want key %s", k.ID, err, good.ID)
		}
	})
}

func TestKeysExpire(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		start := time.Now().Truncate(time.Microsecond)
		_, secret := create(t, s, database.NewKey{Name: "a", Expires: start.Add(time.Hour)})
		for _, c := range []struct {
			after time.Duration
			want  error
		}{{time.Hour - time.Microsecond, nil}, {time.Hour, ErrBadKey}, {24 * time.Hour, ErrBadKey}} {
			s.now = func() time.Time { return start.Add(c.after) }
			if _, err := s.Authenticate(t.Context(), secret); !errors.Is(err, c.want) {
				t.Errorf("after %s: got %v, want %v", c.after, err, c.want)
			}
		}
		if _, _, err := s.CreateKey(t.Context(), database.NewKey{Name: "a"}); !errors.Is(err, ErrKeyExists) {
			t.Errorf("the name of an expired key: got %v, want ErrKeyExists until it is revoked", err)
		}
	})
}

// A key that one process revokes is refused by another from then on.
func TestRevokedElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		here, elsewhere := open(t, source), open(t, source)
		key, secret := create(t, elsewhere, database.NewKey{Name: "a"})
		if _, err := here.Authenticate(t.Context(), secret); err != nil {
			t.Fatalf("before: got %v, want no error", err)
		}
		if _, err := elsewhere.RevokeKey(t.Context(), key.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Authenticate(t.Context(), secret); !errors.Is(err, ErrBadKey) {
			t.Errorf("after: got %v, want ErrBadKey", err)
		}
	})
}

// Of those who make a key of one name at the same time, one gets it.
func TestOneMakesAKey(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		errs := make([]error, 8)
		var calls sync.WaitGroup
		begin := make(chan struct{})
		for i := range errs {
			calls.Go(func() {
				<-begin
				_, _, errs[i] = stores[i%len(stores)].CreateKey(t.Context(), database.NewKey{Name: "a", Project: "new"})
			})
		}
		close(begin)
		calls.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else if !errors.Is(err, ErrKeyExists) {
				t.Errorf("got %v, want ErrKeyExists", err)
			}
		}
		keys, err := stores[0].Keys(t.Context())
		if made != 1 || len(keys) != 1 || err != nil {
			t.Errorf("%d calls made a key, and there are %d, %v, want one", made, len(keys), err)
		}
	})
}

// TestMaxKeys: a project has at most so many keys that can be used, however many are made at the same time, and other projects are not in the way.
func TestMaxKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		start := time.Now()
		old, _ := create(t, stores[0], database.NewKey{Name: "revoked"})
		if _, err := stores[0].RevokeKey(t.Context(), old.ID); err != nil {
			t.Fatal(err)
		}
		create(t, stores[0], database.NewKey{Name: "ends", Expires: start.Add(time.Hour)})
		for i := range MaxKeys - 3 {
			create(t, stores[0], database.NewKey{Name: fmt.Sprint("key-", i)})
		}
		errs := make([]error, 8)
		var calls sync.WaitGroup
		begin := make(chan struct{})
		for i := range errs {
			calls.Go(func() {
				<-begin
				_, _, errs[i] = stores[i%len(stores)].CreateKey(t.Context(), database.NewKey{Name: fmt.Sprint("at-once-", i)})
			})
		}
		close(begin)
		calls.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else if !errors.Is(err, service.ErrManyKeys) || !strings.Contains(err.Error(), "revoke one") {
				t.Errorf("got %v, want ErrManyKeys and what to do", err)
			}
		}
		if made != 2 {
			t.Errorf("%d keys were made at the same time, want the 2 that there was room for", made)
		}
		create(t, stores[0], database.NewKey{Name: "a", Project: "other"})
		stores[0].now = func() time.Time { return start.Add(time.Hour) }
		create(t, stores[0], database.NewKey{Name: "in-place-of-it"})
		if _, _, err := stores[0].CreateKey(t.Context(), database.NewKey{Name: "more"}); !errors.Is(err, service.ErrManyKeys) {
			t.Errorf("one more: got %v, want ErrManyKeys", err)
		}
	})
}

// TestEndedKeys: of keys that have ended the newest are kept, and all others.
func TestEndedKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		kept, secret := create(t, s, database.NewKey{Name: "kept"})
		other, _ := create(t, s, database.NewKey{Name: "other", Project: "other"})
		if _, err := s.RevokeKey(t.Context(), other.ID); err != nil {
			t.Fatal(err)
		}
		insert := "INSERT INTO keys (id, project, name, digest, scopes, created, expires, revoked) VALUES ($1, $2, $1, '', 'read', $3, 0, 1)"
		for i := range maxEnded + 2 {
			if _, err := s.db.ExecContext(t.Context(), insert, fmt.Sprintf("ended-%04d", i), kept.ProjectID, i+1); err != nil {
				t.Fatal(err)
			}
		}
		create(t, s, database.NewKey{Name: "new"})
		keys, err := s.Keys(t.Context())
		if err != nil || len(keys) != maxEnded+3 {
			t.Errorf("got %d keys, %v, want %d", len(keys), err, maxEnded+3)
		}
		for _, k := range keys {
			if k.ID == "ended-0000" || k.ID == "ended-0001" {
				t.Errorf("%s is kept, want the oldest dropped", k.ID)
			}
		}
		if _, err := s.Authenticate(t.Context(), secret); err != nil {
			t.Errorf("the oldest key of all: got %v, want no error: it has not ended", err)
		}
	})
}

// TestMaker: no key is made with one that cannot be used any more, or of another project.
func TestMaker(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		now := time.Now()
		maker, _ := create(t, s, database.NewKey{Name: "maker"})
		ends, _ := create(t, s, database.NewKey{Name: "ends", Expires: now.Add(time.Hour)})
		revoked, _ := create(t, s, database.NewKey{Name: "revoked"})
		other, _ := create(t, s, database.NewKey{Name: "other", Project: "other"})
		if _, err := s.RevokeKey(t.Context(), revoked.ID); err != nil {
			t.Fatal(err)
		}
		create(t, s, database.NewKey{Name: "a", Maker: maker.ID})
		create(t, s, database.NewKey{Name: "b", Maker: ends.ID})
		s.now = func() time.Time { return now.Add(time.Hour) }
		for what, id := range map[string]string{"revoked": revoked.ID, "past its end": ends.ID, "of another project": other.ID, "none": "none"} {
			if _, secret, err := s.CreateKey(t.Context(), database.NewKey{Name: "c", Maker: id}); !errors.Is(err, ErrBadKey) || secret != "" {
				t.Errorf("made with one that is %s: got %v, want ErrBadKey", what, err)
			}
		}
	})
}

// TestProjectKeys: a project's keys come page by page, the newest first, and it can revoke no others.
func TestProjectKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		start := time.Now()
		at := start
		s.now = func() time.Time { return at }
		var ids []string
		project := ""
		for i := range 7 {
			if i != 3 { // the third and the fourth are made at the same time
				at = at.Add(time.Second)
			}
			k, _ := create(t, s, database.NewKey{Name: fmt.Sprint("key-", i), Expires: start.Add(time.Duration(10+i) * time.Minute)})
			ids, project = append(ids, k.ID), k.ProjectID
		}
		if ids[2] > ids[3] {
			ids[2], ids[3] = ids[3], ids[2]
		}
		slices.Reverse(ids)
		other, secret := create(t, s, database.NewKey{Name: "key-0", Project: "other"})
		list := func(f database.KeyQuery) (pages [][]string) {
			for f.ProjectID = project; ; {
				keys, err := s.ProjectKeys(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if len(keys) == 0 {
					return pages
				}
				var page []string
				for _, k := range keys {
					page = append(page, k.ID)
				}
				pages, f.After = append(pages, page), page[len(page)-1]
			}
		}
		if diff := cmp.Diff([][]string{ids[:3], ids[3:6], ids[6:]}, list(database.KeyQuery{Limit: 3})); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		revoked, err := s.RevokeProjectKey(t.Context(), project, ids[1])
		if err != nil || revoked.ID != ids[1] || revoked.Revoked.IsZero() {
			t.Errorf("got %+v, %v, want the key, which is revoked", revoked, err)
		}
		if again, err := s.RevokeProjectKey(t.Context(), project, ids[1]); err != nil || !again.Revoked.Equal(revoked.Revoked) {
			t.Errorf("once more: got %+v, %v, want it as it is", again, err)
		}
		at = start.Add(10 * time.Minute) // the end of the oldest
		if diff := cmp.Diff([][]string{{ids[0], ids[2]}, {ids[3], ids[4]}, {ids[5]}}, list(database.KeyQuery{Limit: 2, Usable: true})); diff != "" {
			t.Errorf("those that can be used: -want +got\n%s", diff)
		}
		for _, id := range []string{other.ID, "none", "key-1", "", "a\x00b"} {
			if k, err := s.RevokeProjectKey(t.Context(), project, id); !errors.Is(err, ErrNoKey) || k.ID != "" {
				t.Errorf("revoke %q: got %+v, %v, want ErrNoKey", id, k, err)
			}
			if id == "" {
				continue
			}
			if keys, err := s.ProjectKeys(t.Context(), database.KeyQuery{ProjectID: project, After: id, Limit: 9}); !errors.Is(err, ErrNoKey) || len(keys) > 0 {
				t.Errorf("keys after %q: got %+v, %v, want ErrNoKey", id, keys, err)
			}
		}
		if _, err := s.Authenticate(t.Context(), secret); err != nil {
			t.Errorf("the other project's key: got %v, want no error", err)
		}
	})
}

// No file of the database has a secret.
func TestSecretsAreNotKept(t *testing.T) {
	path := newFile(t)
	s := open(t, path)
	key, secret := create(t, s, database.NewKey{Name: "a"})
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		seen = seen || bytes.Contains(data, []byte(key.ID)) && bytes.Contains(data, []byte(digest(secret)))
		if bytes.Contains(data, []byte(secret[len(secret)-randomLen:])) {
			t.Errorf("%s has a secret", f.Name())
		}
	}
	if !seen {
		t.Error("no file has the key's id and digest, want one: secrets would not be seen either")
	}
}
