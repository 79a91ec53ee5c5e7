package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

func testOwner(c *fake.Clientset, ttl time.Duration) *owner {
	return newOwner(&access.Cluster{Client: c, Namespace: testNamespace}, "me", ttl)
}

func jobs(t *testing.T, c *fake.Clientset) []batchv1.Job {
	t.Helper()
	list, err := c.BatchV1().Jobs(testNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// One Job owns all pods, is there before the first and goes after the last.
func TestOwnerIsOneJob(t *testing.T) {
	c := fake.NewClientset()
	o := testOwner(c, time.Hour)
	const pods = 20
	var all sync.WaitGroup
	for range pods {
		all.Go(func() {
			if ref, err := o.enter(t.Context()); err != nil || ref == nil || ref.Name != "llmsandbox-owner-me" || *ref.Controller || *ref.BlockOwnerDeletion {
				t.Errorf("owner %+v, error %v, want Name = \"llmsandbox-owner-me\", Controller and BlockOwnerDeletion false, no error", ref, err)
			}
		})
	}
	all.Wait()
	made := jobs(t, c)
	if len(made) != 1 {
		t.Fatalf("%d Jobs, want one", len(made))
	}
	spec := made[0].Spec
	if *spec.Parallelism != 0 || *spec.ActiveDeadlineSeconds != 3600 || *spec.TTLSecondsAfterFinished != 0 {
		t.Errorf("the Job is %+v: it must make no pod, end by itself and go at once, want Parallelism = 0, ActiveDeadlineSeconds = 3600, TTLSecondsAfterFinished = 0", spec)
	}
	for i := range pods {
		if len(jobs(t, c)) != 1 {
			t.Fatalf("the Job is gone after %d of %d pods, want len(jobs(t, c)) = 1", i, pods)
		}
		if err := o.leave(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if left := jobs(t, c); len(left) != 0 {
		t.Errorf("left: %+v, want none", left)
	}
}

// The heartbeat pushes the deadline on, by more than the time that has passed.
func TestHeartbeat(t *testing.T) {
	c := fake.NewClientset()
	deadlines := make(chan int64)
	c.PrependReactor("patch", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
		var patch struct{ Spec batchv1.JobSpec }
		if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			t.Error(err)
		}
		deadlines <- *patch.Spec.ActiveDeadlineSeconds
		return true, &batchv1.Job{}, nil
	})
	const ttl = 1500 * time.Millisecond
	o := testOwner(c, ttl)
	before := time.Now()
	if _, err := o.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	for range 3 {
		least := time.Since(after) + ttl // at the time of the next beat it is more
		at := time.Duration(<-deadlines) * time.Second
		if most := time.Since(before) + ttl + time.Second; at < least || at > most {
			t.Errorf("the deadline is %v, want %v to %v", at, least, most)
		}
	}
	// A heartbeat that is on its way does not keep the last one from leaving.
	go func() {
		for range deadlines {
		}
	}()
	if err := o.leave(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	close(deadlines)
}

// A Job that is gone is replaced for pods that are made later.
func TestOwnerAfterItsJobIsGone(t *testing.T) {
	c := fake.NewClientset()
	gone := make(chan struct{})
	c.PrependReactor("patch", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		defer close(gone)
		return true, nil, apierrors.NewNotFound(batchv1.Resource("jobs"), "llmsandbox-owner-me")
	})
	o := testOwner(c, 300*time.Millisecond)
	first, err := o.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-gone
	if err := c.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), testNamespace, first.Name); err != nil {
		t.Fatal(err)
	}
	o.beats.Wait() // it ends by itself
	if o.ref != nil {
		t.Fatalf("the Job that is gone still counts: ref = %v, want nil", o.ref)
	}
	if _, err := o.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(jobs(t, c)) != 1 {
		t.Errorf("no new Job: len(jobs(t, c)) = %v, want 1", len(jobs(t, c)))
	}
	c.ReactionChain = c.ReactionChain[1:]
	for range 2 {
		if err := o.leave(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(jobs(t, c)) != 0 {
		t.Errorf("the new Job is left: len(jobs(t, c)) = %v, want 0", len(jobs(t, c)))
	}
}

// Where the cluster allows no Jobs, sandboxes have no owner.
func TestOwnerForbidden(t *testing.T) {
	c := fake.NewClientset()
	c.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errors.New("no"))
	})
	o := testOwner(c, time.Hour)
	if ref, err := o.enter(t.Context()); ref != nil || err != nil {
		t.Errorf("owner %v, error %v, want ref = nil, no error", ref, err)
	}
	if err := o.leave(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if got := verbs(c); !slices.Equal(got, []string{"create jobs"}) {
		t.Errorf("requests: %q, want [\"create jobs\"]", got)
	}
}

// A caller that waits for another's Job may give up.
func TestOwnerWaitIsCancelled(t *testing.T) {
	c := fake.NewClientset()
	o := testOwner(c, time.Hour)
	if err := o.lock.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer o.lock.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// A pod that could not be deleted is deleted with a later heartbeat.
func TestOwedDeletions(t *testing.T) {
	c := fake.NewClientset()
	o := testOwner(c, 300*time.Millisecond)
	for range 2 {
		if _, err := o.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tries := make(chan int, 1)
	tried := 0
	err := o.leave(t.Context(), func(context.Context) error {
		if tried++; tried < 3 {
			return errors.New("the API server is away")
		}
		tries <- tried
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-tries; n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	if err := o.leave(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(o.owed) > 0 || len(jobs(t, c)) > 0 {
		t.Errorf("left: %d deletions to do, %d Jobs, want none", len(o.owed), len(jobs(t, c)))
	}
}

// When the last pod cannot be deleted, its owner is not kept alive.
func TestLastPodCannotBeDeleted(t *testing.T) {
	c := fake.NewClientset()
	c.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("starting")
	})
	o := testOwner(c, time.Hour)
	if _, err := o.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := o.leave(t.Context(), func(context.Context) error { return errors.New("away") })
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("error %v, want what the cluster said", err)
	}
	o.beats.Wait()
	if o.ref != nil || len(o.owed) > 0 {
		t.Errorf("owner %v, %d deletions to do, want none", o.ref, len(o.owed))
	}
}
