package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
)

// TestLimiter has one request to send, and none for a long time after it.
func TestLimiter(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1"}`))
	}))
	defer s.Close()
	c, err := Find(Options{
		Kubeconfig: write(t, "{clusters: [{name: c, cluster: {server: '"+s.URL+"'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}"),
		QPS:        0.001, Burst: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ask := func(ctx context.Context) error {
		_, err := c.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err
	}
	if err := ask(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%v, want the error of a deadline, before it", err)
	}
	cancelled, end := context.WithCancel(t.Context())
	end()
	if err := ask(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's own error", err)
	}
	// Without a deadline nothing is refused.
	waits := limiter{flowcontrol.NewTokenBucketRateLimiter(1000, 1)}
	for range 3 {
		if err := waits.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
