package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
)

// create makes a key that must be made.
func create(t *testing.T, s *Store, n NewKey) (Key, string) {
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
			new  NewKey
			want Key
		}{
			{"what is left out", NewKey{Name: "a"}, Key{Name: "a", Project: "default", Scopes: []Scope{ScopeRead, ScopeWrite}}},
			{"scopes in order, each once", NewKey{Name: "b", Project: "p", Scopes: []Scope{ScopeWrite, ScopeRead, ScopeWrite}},
				Key{Name: "b", Project: "p", Scopes: []Scope{ScopeRead, ScopeWrite}}},
			{"an end", NewKey{Name: "c", Scopes: []Scope{ScopeRead}, Expires: expires},
				Key{Name: "c", Project: "default", Scopes: []Scope{ScopeRead}, Expires: expires.Truncate(time.Microsecond).UTC()}},
			{"the name of another project's", NewKey{Name: "a", Project: "p"}, Key{Name: "a", Project: "p", Scopes: []Scope{ScopeRead, ScopeWrite}}},
			{"the longest names", NewKey{Name: strings.Repeat("x", 64), Project: strings.Repeat("Y", 64)},
				Key{Name: strings.Repeat("x", 64), Project: strings.Repeat("Y", 64), Scopes: []Scope{ScopeRead, ScopeWrite}}},
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
		for name, n := range map[string]NewKey{
			"no name":             {},
			"long name":           {Name: strings.Repeat("x", 65)},
			"space in name":       {Name: "a b"},
			"NUL in name":         {Name: "a\x00"},
			"other letter":        {Name: "ä"},
			"no UTF-8":            {Name: "\xff"},
			"slash in project":    {Name: "a", Project: "a/b"},
			"long project":        {Name: "a", Project: strings.Repeat("x", 65)},
			"unknown scope":       {Name: "a", Scopes: []Scope{ScopeRead, "root"}},
			"two scopes in one":   {Name: "a", Scopes: []Scope{"read write"}},
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
		first, _ := create(t, s, NewKey{Name: "ci"})
		_, secret, err := s.CreateKey(t.Context(), NewKey{Name: "ci", Project: "default"})
		if !errors.Is(err, ErrKeyExists) || secret != "" || !strings.Contains(err.Error(), first.ID) {
			t.Errorf("a name in use: got %v, want ErrKeyExists with id %s", err, first.ID)
		}
		create(t, s, NewKey{Name: "CI"}) // another name
		if _, err := s.RevokeKey(t.Context(), "ci"); err != nil {
			t.Fatal(err)
		}
		second, _ := create(t, s, NewKey{Name: "ci"})
		if second.ProjectID != first.ProjectID || second.ID == first.ID {
			t.Errorf("got key %s of project %s, want another key of project %s", second.ID, second.ProjectID, first.ProjectID)
		}
	})
}

func TestKeysAreInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		var want []Key
		for _, n := range []NewKey{{Name: "B", Project: "Z"}, {Name: "a", Project: "Z"}, {Name: "Z", Project: "b"}, {Name: "_", Project: "b"}, {Name: "c", Project: "b"}} {
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
		one, secretOne := create(t, s, NewKey{Name: "same", Project: "one"})
		two, secretTwo := create(t, s, NewKey{Name: "same", Project: "two"})
		create(t, s, NewKey{Name: one.ID, Project: "three"}) // an id comes before a name

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
		good, secret := create(t, s, NewKey{Name: "good"})
		revoked, revokedSecret := create(t, s, NewKey{Name: "revoked"})
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
		_, secret := create(t, s, NewKey{Name: "a", Expires: start.Add(time.Hour)})
		for _, c := range []struct {
			after time.Duration
			want  error
		}{{time.Hour - time.Microsecond, nil}, {time.Hour, ErrBadKey}, {24 * time.Hour, ErrBadKey}} {
			s.now = func() time.Time { return start.Add(c.after) }
			if _, err := s.Authenticate(t.Context(), secret); !errors.Is(err, c.want) {
				t.Errorf("after %s: got %v, want %v", c.after, err, c.want)
			}
		}
		if _, _, err := s.CreateKey(t.Context(), NewKey{Name: "a"}); !errors.Is(err, ErrKeyExists) {
			t.Errorf("the name of an expired key: got %v, want ErrKeyExists until it is revoked", err)
		}
	})
}

// A key that one process revokes is refused by another from then on.
func TestRevokedElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		here, elsewhere := open(t, source), open(t, source)
		key, secret := create(t, elsewhere, NewKey{Name: "a"})
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
				_, _, errs[i] = stores[i%len(stores)].CreateKey(t.Context(), NewKey{Name: "a", Project: "new"})
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

// No file of the database has a secret.
func TestSecretsAreNotKept(t *testing.T) {
	path := newFile(t)
	s := open(t, path)
	key, secret := create(t, s, NewKey{Name: "a"})
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
