package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// waiting is the status of a pod whose init container cannot start.
func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{
		Name: podspec.InitContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func unschedulable(message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
	}}}
}

// startsAs has pods come to be with that status.
func startsAs(c *fake.Clientset, status corev1.PodStatus) {
	c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Status = status
		return false, nil, nil
	})
}

func refuses(c *fake.Clientset, resource, why string) {
	c.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "x", errors.New(why))
	})
}

// A start that fails reports the cluster's reason, and leaves nothing.
func TestCreateFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		user   string
		prep   func(*fake.Clientset)
		cancel bool // as soon as there is a pod
		start  bool // the error is of the start
		is     error
		says   string
	}{
		{name: "image", prep: func(c *fake.Clientset) {
			startsAs(c, waiting("ErrImagePull", "registry.test/a: not found"))
		}, start: true, is: backend.ErrImageNotFound, says: "registry.test/a: not found"},
		{name: "no node", prep: func(c *fake.Clientset) {
			startsAs(c, unschedulable("0/3 nodes are available: 3 Insufficient cpu."))
		}, start: true, says: "3 Insufficient cpu"},
		{name: "no node in time", o: Options{WaitForNode: 50 * time.Millisecond}, prep: func(c *fake.Clientset) {
			startsAs(c, unschedulable("0/3 nodes are available."))
		}, start: true, says: "0/3 nodes"},
		{name: "ended", prep: func(c *fake.Clientset) {
			startsAs(c, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory"})
		}, start: true, says: "the node was low on memory"},
		{name: "refused", prep: func(c *fake.Clientset) { refuses(c, "pods", "exceeded quota: q") }, says: "exceeded quota: q"},
		{name: "root", user: "root", prep: func(c *fake.Clientset) {
			refuses(c, "pods", `violates PodSecurity "restricted:latest": runAsNonRoot != true`)
		},
			is: backend.ErrUnsupported, says: "namespace sandboxes enforces the Pod Security level restricted"},
		{name: "not for root", user: "root", prep: func(c *fake.Clientset) { refuses(c, "pods", `violates PodSecurity "baseline:latest": privileged`) }, says: "without a template sandboxes hold"},
		{name: "not root", user: "7", prep: func(c *fake.Clientset) { refuses(c, "pods", `violates PodSecurity "restricted:latest": privileged`) }, says: "without a template sandboxes hold"},
		{name: "no policy", prep: func(c *fake.Clientset) { refuses(c, "networkpolicies", "not for you") }, says: "not for you"},
		{name: "never starts", o: Options{StartTimeout: 50 * time.Millisecond}, is: context.DeadlineExceeded, says: "StartTimeout"},
		{name: "given up", cancel: true, is: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, client := testBackend(t, c.o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.prep != nil {
				c.prep(client)
			}
			if c.cancel {
				client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					cancel()
					return false, nil, nil
				})
			}
			_, err := b.Create(ctx, backend.Spec{ID: "a", Language: "python", User: c.user})
			var failed *podwatch.StartError
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || errors.As(err, &failed) != c.start {
				t.Errorf("error %v, want %v with %q", err, c.is, c.says)
			}
			nothingLeft(t, client)
		})
	}
}

func nothingLeft(t *testing.T, c *fake.Clientset) {
	t.Helper()
	pods, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left (%v), want no error, no Items", len(pods.Items), err)
	}
	if left := jobs(t, c); len(left) > 0 {
		t.Errorf("%d Jobs are left, want at most 0", len(left))
	}
}

// What no pod can have is refused before anything is asked of the cluster.
func TestRootRefused(t *testing.T) {
	b, client := testBackend(t, Options{})
	for _, c := range []struct {
		spec backend.Spec
		is   error
		says string
	}{
		{backend.Spec{User: "1000:1000", Sudo: true}, backend.ErrUnsupported, "--user root"},
		{backend.Spec{WritableRoot: true}, backend.ErrUnsupported, "--user root"},
		{backend.Spec{User: "app"}, backend.ErrUnsupported, "by number only"},
		{backend.Spec{User: "65536"}, backend.ErrInvalid, "below 65536"},
		{backend.Spec{Workdir: "/etc/x"}, backend.ErrInvalid, "/etc"},
		{backend.Spec{User: "root", Limits: backend.Limits{Disk: 1 << 20, Required: []string{"disk"}}}, backend.ErrNotEnforced, "leave out User"},
		{backend.Spec{User: "7:7", WritableRoot: true, Limits: backend.Limits{Disk: 1 << 20, Required: []string{"disk"}}}, backend.ErrNotEnforced, "--writable-root"},
		{backend.Spec{User: "root", Limits: backend.Limits{PIDs: 10, Required: []string{"pids"}}}, backend.ErrNotEnforced, "leave the user"},
	} {
		c.spec.ID, c.spec.Language = "a", "python"
		if _, err := b.Create(t.Context(), c.spec); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %v and %q", c.spec, err, c.is, c.says)
		}
	}
	if asked := verbs(client); len(asked) > 0 {
		t.Errorf("the cluster was asked %q, want nothing", asked)
	}
}

// What is the same for all is asked for once.
func TestRequestsPerSandbox(t *testing.T) {
	b, client := testBackend(t, Options{}, isolation.Policy(testNamespace))
	startsAs(client, waiting("ErrImagePull", "not found"))
	for i := range 3 {
		client.ClearActions()
		if _, err := b.Create(t.Context(), backend.Spec{ID: fmt.Sprint("a", i), Language: "python"}); err == nil {
			t.Fatal("a pod without a kubelet has started: got no error, want an error")
		}
		got := slices.DeleteFunc(verbs(client), func(v string) bool { return strings.HasPrefix(v, "list") || strings.HasPrefix(v, "watch") })
		want := []string{"create jobs", "create pods", "delete pods", "delete jobs"}
		if i == 0 {
			want = append([]string{"get networkpolicies"}, want...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	}
	if _, err := client.NetworkingV1().NetworkPolicies(testNamespace).Get(t.Context(), isolation.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// The pod is the safe one, with the caller's wishes and an owner.
func TestPodThatIsAskedFor(t *testing.T) {
	b, client := testBackend(t, Options{TTL: 20 * time.Second})
	startsAs(client, waiting("ErrImagePull", "not found"))
	var made *corev1.Pod
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		made = a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		return false, nil, nil
	})
	spec := backend.Spec{
		ID: "a", Language: "python", Env: []string{"A=1"}, Labels: map[string]string{"odd key": "ü"}, Deadline: time.Now().Add(time.Hour),
		Limits: backend.Limits{Memory: 1 << 28, PIDs: 77},
	}
	if _, err := b.Create(t.Context(), spec); err == nil {
		t.Fatal("a pod without a kubelet has started: got no error, want an error")
	}
	if len(made.OwnerReferences) != 1 || made.OwnerReferences[0].Name != ownerName(b.owner.id) {
		t.Errorf("owners %+v, want len(made.OwnerReferences) = 1, made.OwnerReferences[0].Name = ownerName(b.owner.id)", made.OwnerReferences)
	}
	info, err := decodeInfo(made)
	if err != nil || info.ID != "a" || info.Labels["odd key"] != "ü" || info.Limits.Memory != spec.Limits.Memory || info.Limits.PIDs != 77 || !info.Deadline.Equal(spec.Deadline) || !strings.Contains(info.Owner, "pid ") {
		t.Errorf("described as %+v (%v), want no error, ID = \"a\", info.Labels[\"odd key\"] = \"ü\", Memory = %v, PIDs = 77, info.Deadline.Equal(spec.Deadline) = true, Owner containing \"pid \"", info, err, spec.Limits.Memory)
	}
	guest, err := decodeGuest(made)
	if err != nil || guest.Workdir != "/sandbox" || !slices.Equal(guest.Env, spec.Env) {
		t.Errorf("inside is %+v (%v), want no error, Workdir = \"/sandbox\", Env %v", guest, err, spec.Env)
	}
	agent, err := agentOf(made)
	if err != nil || agent.Socket != "@llmsandbox-a" || len(agent.Token) < 32 {
		t.Errorf("agent %+v (%v), want no error, Socket = \"@llmsandbox-a\", len(agent.Token) >= 32", agent, err)
	}
	for _, text := range made.Annotations {
		if strings.Contains(text, agent.Token) {
			t.Errorf("the token is in an annotation: %s, want it not to contain %q", text, agent.Token)
		}
	}
	line := strings.Join(made.Spec.Containers[0].Args, " ")
	for _, want := range []string{"--grace 10", "--first-grace 60", fmt.Sprintf("--rlimit nproc=%d", 77+agentproto.SpareThreads), fmt.Sprintf("--deadline %d", spec.Deadline.UnixMilli())} {
		if !strings.Contains(line, want) {
			t.Errorf("the agent's arguments %q have no %q", line, want)
		}
	}
}
