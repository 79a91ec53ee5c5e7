package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRates: so many requests pass in a second, those of each key, and a forgotten key is one that had not sent any.
func TestRates(t *testing.T) {
	r, now := rates{most: 2}, time.Now()
	for _, step := range []struct {
		key        string
		at, passes time.Duration
	}{
		{"a", 0, 0}, {"a", 0, 0}, {"a", 0, 500 * time.Millisecond}, {"b", 0, 0}, {"a", 100 * time.Millisecond, 400 * time.Millisecond}, {"a", 500 * time.Millisecond, 0},
		{"a", 500 * time.Millisecond, 500 * time.Millisecond}, {"a", 10 * time.Second, 0}, {"a", 10 * time.Second, 0}, {"a", 10 * time.Second, 500 * time.Millisecond},
	} {
		if got := r.wait(step.key, now.Add(step.at)); (got - step.passes).Abs() > time.Microsecond {
			t.Errorf("%s after %v: got %v, want %v", step.key, step.at, got, step.passes)
		}
	}
	for i := range 3 * maxRates {
		r.wait(fmt.Sprint(i), now.Add(time.Duration(10+i)*time.Second))
	}
	if len(r.of) > maxRates {
		t.Errorf("got %d keys, want at most %d", len(r.of), maxRates)
	}
}

// TestRate: what is too much is refused before it is begun, and what needs no key is not counted.
func TestRate(t *testing.T) {
	c := serve(t, Config{MaxRequestRate: 1})
	c.want(http.StatusOK, nil, http.MethodGet, "/v1/languages", "")
	c.server.rates.wait("a/one", time.Now().Add(time.Hour)) // takes what there is, for as long as the test goes on
	res, text := c.do(http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)
	if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"code":"rate"`) || res.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %v %s, want 429 and the time", res.StatusCode, res.Header, text)
	}
	c.as(keyB).want(http.StatusOK, nil, http.MethodGet, "/v1/languages", "")
	for range 5 {
		c.want(http.StatusOK, nil, http.MethodGet, "/healthz", "")
	}
	if list, err := c.server.service.List(testContext(t), "a"); err != nil || len(list) > 0 {
		t.Errorf("got %v, %v, want no sandbox", list, err)
	}
	if _, err := New(&Config{MaxRequestRate: -1}); err == nil {
		t.Error("got no error, want one for a negative rate")
	}
}
