package podspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/llmsandbox/llmsandbox/backend"
)

// maxTemplate bounds the text of a template, in bytes: a cluster takes no larger objects.
const maxTemplate = 1 << 20

// maxFaults bounds how many unknown fields an error names.
const maxFaults = 10

// ParseTemplate reads a pod template from YAML or JSON: the object that has the fields
// metadata and spec of a pod, or a whole Pod or PodTemplate of v1. Fields that are not
// known, or given twice, are errors that name them, as is a second document. It only
// reads: Validate reports whether the template can be used. Errors wrap backend.ErrInvalid.
func ParseTemplate(text []byte) (*corev1.PodTemplateSpec, error) {
	t, err := parseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("pod template: %w: %w", backend.ErrInvalid, err)
	}
	return t, nil
}

func parseTemplate(text []byte) (*corev1.PodTemplateSpec, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("it has %d bytes, more than 1 MiB", len(text))
	}
	if err := oneDocument(text); err != nil {
		return nil, err
	}
	// Names that are given twice are errors here already.
	j, err := kyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	if j[0] != '{' {
		return nil, errors.New("it is no object: give one with metadata and spec, or a Pod")
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(j, &kind); err != nil {
		return nil, err
	}
	switch {
	case kind.Kind == "" && kind.APIVersion == "":
		var t corev1.PodTemplateSpec
		if err := strictly(j, &t); err != nil {
			return nil, err
		}
		return &t, nil
	case kind.APIVersion != "v1" || kind.Kind != "Pod" && kind.Kind != "PodTemplate":
		return nil, fmt.Errorf("apiVersion %q and kind %q: give a Pod or PodTemplate of v1, or leave both out; of a Deployment or Job, take what is below spec.template", kind.APIVersion, kind.Kind)
	case kind.Kind == "PodTemplate":
		var p corev1.PodTemplate
		if err := strictly(j, &p); err != nil {
			return nil, err
		}
		return &p.Template, nil
	}
	var p corev1.Pod
	if err := strictly(j, &p); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(p.Status, corev1.PodStatus{}) {
		return nil, errors.New("status: it is the cluster's to say: leave it out")
	}
	return &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, nil
}

// oneDocument fails where a text has more than one document, of which only the first
// would be read.
func oneDocument(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var doc yaml.Node
		err := d.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return errors.New("it is empty")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 0 && !empty(doc):
			return errors.New("it has more than one document: leave one")
		}
	}
}

// empty reports whether there is nothing after a document's mark.
func empty(doc yaml.Node) bool {
	return len(doc.Content) == 0 || len(doc.Content) == 1 && doc.Content[0].Tag == "!!null"
}

// strictly decodes JSON and fails on what the type does not know.
func strictly(j []byte, into any) error {
	faults, err := kjson.UnmarshalStrict(j, into)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		return nil
	}
	var words []string
	for _, f := range faults[:min(len(faults), maxFaults)] {
		words = append(words, f.Error())
	}
	if more := len(faults) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(words, "; "))
}
