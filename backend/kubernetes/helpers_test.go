package kubernetes

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

const testNamespace = "sandboxes"

// testBackend is a backend of a cluster that is not there, with these objects in it.
func testBackend(t *testing.T, o Options, objects ...runtime.Object) (*Backend, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	made := 0
	client.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if object, err := meta.Accessor(a.(clienttesting.CreateAction).GetObject()); err == nil {
			made++
			object.SetUID(types.UID(fmt.Sprint("uid-", made)))
		}
		return false, nil, nil
	})
	if o.CacheDir == "" {
		o.CacheDir = t.TempDir()
	}
	o, err := o.resolve()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBackend(&access.Cluster{
		Config: &rest.Config{Host: "https://192.0.2.1"}, Client: client, Namespace: testNamespace,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return b, client
}

// verbs are the requests that a cluster got, as "verb resource".
func verbs(c *fake.Clientset) []string {
	var all []string
	for _, a := range c.Actions() {
		all = append(all, a.GetVerb()+" "+a.GetResource().Resource)
	}
	return all
}
