package gpus

import (
	"errors"
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Request{
		"":                           {},
		"all":                        {Count: All},
		"2":                          {Count: 2},
		"0,1":                        {IDs: []string{"0", "1"}},
		"GPU-3faa8c21,MIG-1,0:1":     {IDs: []string{"GPU-3faa8c21", "MIG-1", "0:1"}},
		"nvidia.com/gpu=0":           {CDI: []string{"nvidia.com/gpu=0"}},
		"amd.com/gpu=all,GPU-3faa":   {CDI: []string{"amd.com/gpu=all"}, IDs: []string{"GPU-3faa"}},
		"nvidia.com/gpu=GPU-1,a/b=c": {CDI: []string{"nvidia.com/gpu=GPU-1", "a/b=c"}},
	} {
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "1025", " ", "0,", ",", "device=0", "a b", "nvidia.com/gpu", "nvidia.com/gpu=", "/dev/nvidia0", "a/b=c=d", "\x00", "1,\n"} {
		if got, err := Parse(text); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %+v, %v, want ErrInvalid", text, got, err)
		}
	}
}
