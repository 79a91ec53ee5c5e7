package pool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// Unlimited lifts a limit of [Config].
const Unlimited = llmsandbox.Unlimited

// Exhaustion says what Acquire does when Max sandboxes are in use.
type Exhaustion string

const (
	// Wait waits in line for AcquireTimeout.
	Wait Exhaustion = "wait"
	// FailFast fails at once with ErrExhausted.
	FailFast Exhaustion = "fail_fast"
	// Temporary opens a further sandbox that is removed on release: at most Max of them at
	// a time, then it fails as FailFast does.
	Temporary Exhaustion = "temporary"
)

// Reuse says what becomes of a released sandbox.
type Reuse string

const (
	// ReuseNever removes it; a new one takes its place.
	ReuseNever Reuse = "never"
	// ReuseTenant gives it again, only to the tenant that had it, after a
	// reset that was verified; when there is no tenant or any doubt it is removed.
	ReuseTenant Reuse = "tenant"
)

// Config says what a pool holds. Zero fields take their defaults.
type Config struct {
	// Options are what every sandbox is opened with; a Key overrides some. Their Imports are for
	// their language alone. Their Template is read once, by New.
	Options llmsandbox.Options
	// Max bounds the sandboxes of all keys together, those being opened and removed
	// included; default 10.
	Max int
	// Min is how many of each of Keys are kept ready; default 0.
	Min int
	// Keys are kept warm; none means the one of Options. Others can be acquired as well,
	// and are opened when they are first asked for.
	Keys []Key
	// IdleTimeout removes what was not asked for during so long, but for Min of each of Keys;
	// default 300 s, Unlimited: never.
	IdleTimeout time.Duration
	// AcquireTimeout bounds Acquire; default 30 s, Unlimited: only its context does.
	AcquireTimeout time.Duration
	// HealthInterval is how often idle sandboxes are asked for a sign of life; default
	// 60 s. One that ends is noticed at once, without.
	HealthInterval time.Duration
	// Lifetime is how old a sandbox may be that is given out; default 3600 s,
	// Unlimited: any age.
	Lifetime time.Duration
	// MaxUses is how often the same sandbox is given to its tenant; 0: any number.
	MaxUses int
	// Exhaustion is Wait unless set.
	Exhaustion Exhaustion
	// Reuse is ReuseNever unless set.
	Reuse Reuse
	// ResetTimeout bounds the reset before a reuse; default 10 s.
	ResetTimeout time.Duration
	// NoPrewarm opens sandboxes only when a caller waits for one.
	NoPrewarm bool
	// Prepare starts the interpreter, or Java's compiler, of a sandbox ahead of its first run, where its
	// language supports it: see [llmsandbox.Sandbox.Prepare].
	Prepare bool
	// Zygote opens the sandboxes of Python from one interpreter for each of Keys, and for Options: see [llmsandbox.Zygote], and
	// there what that shares. Sandboxes of other keys that are acquired have interpreters of their own.
	Zygote bool
	// RefillInterval is the least time between two sandboxes that are opened in the
	// background, that no caller waits for; default 50 ms. At most 2 are being so at a time.
	RefillInterval time.Duration
	// Hooks are called with what happens: see poolprom and poolotel.
	Hooks []Hooks

	language string          // the name of that of Options
	forked   map[string]bool // by their id, keys whose sandboxes come from zygotes
	zygotes  *zygotes
	open     opener
}

const (
	refillParallel = 2
	firstBackoff   = time.Second
	lastBackoff    = time.Minute
	// trusted is for how long a sign of life counts on Acquire. Meanwhile only an end
	// that was observed makes a sandbox unfit.
	trusted     = 5 * time.Second
	pingTimeout = 5 * time.Second
)

// resolve fills in the defaults. In the result 0 means none.
func (c Config) resolve() (Config, error) {
	bad := func(field string, value any, rule string) (Config, error) {
		return c, errclass.Errorf(llmsandbox.ErrInvalid, "pool: %s (%v) %s", field, value, rule)
	}
	c.Max = cmp.Or(c.Max, 10)
	if c.Max < 1 {
		return bad("Max", c.Max, "must be at least 1, or 0 for the default of 10")
	}
	if c.Min < 0 {
		return bad("Min", c.Min, "must not be negative")
	}
	if n := len(c.Keys); n > 1 && c.Min*n > c.Max {
		return bad("Min", c.Min, fmt.Sprintf("times the number of Keys (%d) must not exceed Max (%d)", n, c.Max))
	}
	if c.Min > c.Max {
		return bad("Min", c.Min, fmt.Sprintf("must not exceed Max (%d)", c.Max))
	}
	if c.MaxUses < 0 {
		return bad("MaxUses", c.MaxUses, "must be at least 1, or 0 for any number")
	}
	for _, d := range []struct {
		name      string
		value     *time.Duration
		def       time.Duration
		unlimited bool
	}{
		{"IdleTimeout", &c.IdleTimeout, 300 * time.Second, true},
		{"AcquireTimeout", &c.AcquireTimeout, 30 * time.Second, true},
		{"HealthInterval", &c.HealthInterval, 60 * time.Second, false},
		{"Lifetime", &c.Lifetime, 3600 * time.Second, true},
		{"ResetTimeout", &c.ResetTimeout, 10 * time.Second, false},
		{"RefillInterval", &c.RefillInterval, 50 * time.Millisecond, false},
	} {
		switch {
		case *d.value == 0:
			*d.value = d.def
		case *d.value == Unlimited && d.unlimited:
			*d.value = 0
		case *d.value < 0 && d.unlimited:
			return bad(d.name, *d.value, "must be positive, 0 for the default, or Unlimited")
		case *d.value < 0:
			return bad(d.name, *d.value, "must be positive, or 0 for the default")
		}
	}
	switch c.Exhaustion {
	case "":
		c.Exhaustion = Wait
	case Wait, FailFast, Temporary:
	default:
		return bad("Exhaustion", fmt.Sprintf("%q", c.Exhaustion), "must be Wait, FailFast or Temporary")
	}
	switch c.Reuse {
	case "":
		c.Reuse = ReuseNever
	case ReuseNever, ReuseTenant:
	default:
		return bad("Reuse", fmt.Sprintf("%q", c.Reuse), "must be ReuseNever or ReuseTenant")
	}
	if c.Zygote && c.Reuse != ReuseNever {
		return bad("Zygote", true, "cannot be together with Reuse: such sandboxes cannot be reset")
	}
	if c.Options.ID != "" {
		return bad("Options.ID", fmt.Sprintf("%q", c.Options.ID), "must be empty: each sandbox of a pool gets an id of its own")
	}
	var err error
	if c.Options, err = c.Options.WithTemplate(); err != nil {
		return c, fmt.Errorf("pool: Options.Template: %w", err)
	}
	lang, err := all.Get(cmp.Or(c.Options.Language, llmsandbox.DefaultLanguage))
	if err != nil {
		return c, errclass.Errorf(llmsandbox.ErrInvalid, "pool: Options.Language: %w", err)
	}
	c.language = lang.Name
	keys := c.Keys
	if len(keys) == 0 {
		keys = []Key{{}}
	}
	c.Keys = nil
	for i, k := range keys {
		k, err := c.canonical(k)
		if err != nil {
			return c, errclass.Errorf(llmsandbox.ErrInvalid, "pool: Keys[%d]: %w", i, err)
		}
		c.Keys = append(c.Keys, k)
	}
	if c.Zygote {
		// Not each key that callers can think of: an interpreter stays until the pool is closed.
		own, err := c.canonical(Key{Language: zygoteLanguage})
		if err != nil {
			return c, err
		}
		c.forked = map[string]bool{}
		for _, k := range append(slices.Clone(c.Keys), own) {
			c.forked[k.id()] = k.Language == zygoteLanguage
		}
	}
	c.zygotes = &zygotes{of: map[string]*zygote{}}
	if c.open == nil {
		c.open = c.opening
	}
	return c, nil
}

// zygoteLanguage is the one language that has zygotes.
const zygoteLanguage = "python"

// A Key says which sandboxes are alike.
type Key struct {
	// Language and Image are as in llmsandbox.Options; empty means those of Config.Options.
	Language, Image string
	// Libraries are installed in it; order and doubles do not matter. None means those of
	// Config.Options, for its language.
	Libraries []string
	// Environment is as in llmsandbox.Options; empty means that of Config.Options, for its language.
	Environment string
}

// canonical returns the key in the one form that all who mean the same have.
func (c *Config) canonical(k Key) (Key, error) {
	lang, err := all.Get(cmp.Or(k.Language, c.Options.Language, llmsandbox.DefaultLanguage))
	if err != nil {
		return Key{}, fmt.Errorf("key of a pool: %w", err)
	}
	libraries := k.Libraries
	if len(libraries) == 0 && lang.Name == c.language {
		libraries = c.Options.Libraries
	}
	libraries = slices.Sorted(slices.Values(libraries))
	environment := k.Environment
	if lang.Name == c.language {
		environment = cmp.Or(environment, c.Options.Environment)
	}
	return Key{Language: lang.Name, Image: cmp.Or(k.Image, c.Options.Image), Libraries: slices.Compact(libraries), Environment: environment}, nil
}

// id is the same for the same canonical keys, and no other.
func (k Key) id() string {
	b, _ := json.Marshal(k) // strings always have a form
	return string(b)
}

// options are those that a sandbox of a canonical key is opened with.
func (c *Config) options(k Key) llmsandbox.Options {
	o := c.Options
	o.Language, o.Image, o.Libraries, o.Environment = k.Language, k.Image, k.Libraries, k.Environment
	o.Resettable = o.Resettable || c.Reuse == ReuseTenant
	if k.Language != c.language {
		o.Imports = nil
	}
	return o
}
