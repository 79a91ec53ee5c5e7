package testcluster_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// What goes through a proxy is cut, held and refused as asked, and nothing of it stays.
func TestProxy(t *testing.T) {
	c := testcluster.Start(t)
	namespace := c.Namespace(t)
	before := goleak.IgnoreCurrent()
	t.Run("proxy", func(t *testing.T) {
		direct := c.Client(t).CoreV1().Secrets(namespace)
		p := c.Proxy(t)
		// A config each has connections of its own.
		through := func() (kubernetes.Interface, context.Context) {
			config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			t.Cleanup(cancel)
			return client, ctx
		}
		open := func() watch.Interface {
			client, ctx := through()
			w, err := client.CoreV1().Secrets(namespace).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			return w
		}

		w := open()
		p.Cut()
		if e, ok := <-w.ResultChan(); ok && e.Type != watch.Error {
			t.Errorf("a watch that was cut goes on with %v, want ok = false or Type = watch.Error", e)
		}

		w = open()
		p.Freeze()
		if _, err := direct.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "held"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.Cut() // what was held is lost, not passed on late
		if e, ok := <-w.ResultChan(); ok && e.Type != watch.Error {
			t.Errorf("a watch that was frozen goes on with %v, want ok = false or Type = watch.Error", e)
		}

		if err := p.Shut(true); err != nil {
			t.Fatal(err)
		}
		client, ctx := through()
		if _, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("through a proxy that is shut: %v, want syscall.ECONNREFUSED", err)
		}
		if err := p.Shut(false); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("through a proxy that is open again: %v", err)
		}
	})
	goleak.VerifyNone(t, before, testcluster.IgnoreGoroutines())
}
