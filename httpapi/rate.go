package httpapi

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/time/rate"
)

// maxRates is how many keys' requests are counted before those that have not been used for a while are forgotten.
const maxRates = 1024

// rates counts the requests of each key.
type rates struct {
	most int // in a second, and at once; 0: without end

	mu sync.Mutex
	of map[string]*rate.Limiter
}

// wait counts a request of a key. What it returns is after how long the key may send it; such a request is not counted.
func (r *rates) wait(key string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.of[key]
	if l == nil {
		if len(r.of) >= maxRates {
			for name, other := range r.of {
				if other.TokensAt(now) >= float64(r.most) { // as a new one
					delete(r.of, name)
				}
			}
		}
		if r.of == nil {
			r.of = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(r.most), r.most)
		r.of[key] = l
	}
	asked := l.ReserveN(now, 1)
	after := asked.DelayFrom(now)
	if after > 0 {
		asked.CancelAt(now)
	}
	return after
}

// limitRate refuses requests of keys that send more of them than the operator allows.
func (s *Server) limitRate(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().Metadata[needs] != nil {
		if p := s.tooMany(s.caller(ctx.Context())); p != nil {
			s.write(ctx, s.problem(ctx.Context(), p))
			return
		}
	}
	next(ctx)
}

// tooMany counts a request of a caller. It is the problem of one that comes too soon, else nil.
func (s *Server) tooMany(caller Caller) *problem {
	return s.tooSoon(cmp.Or(caller.KeyID, caller.Project+"/"+caller.KeyName), "the key sends")
}

// tooSoon counts a request as one of those of a key, of which what says that there are too many.
func (s *Server) tooSoon(key, what string) *problem {
	if s.rates.most == 0 {
		return nil
	}
	after := s.rates.wait(key, time.Now())
	if after <= 0 {
		return nil
	}
	p := newProblem(http.StatusTooManyRequests, "rate", fmt.Sprintf("%s more than %d requests in a second: send fewer", what, s.rates.most))
	p.headers.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	return p
}
