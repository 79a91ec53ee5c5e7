package nsinit

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/wire"
)

var sampleLaunch = Launch{
	Args: []string{"agent", "--listen-fd", "3"}, Files: 5, UID: 1000, GID: 1000, Groups: true, AsRoot: true, Wait: 7,
	UIDs: []IDs{{Inside: 1000, Outside: 1 << 24}, {Outside: 1<<24 + 1}}, GIDs: []IDs{{Inside: 1000, Outside: 1 << 24}},
}

func TestLaunchRoundTrip(t *testing.T) {
	var got Launch
	if rest, err := wire.Decode(wire.Append(nil, &sampleLaunch), &got); err != nil || len(rest) > 0 || !reflect.DeepEqual(got, sampleLaunch) {
		t.Errorf("%+v, %v, %v, want what was sent", got, rest, err)
	}
	sent := Launched{PID: 3, Status: 9, Error: "no"}
	var answer Launched
	if rest, err := wire.Decode(wire.Append(nil, &sent), &answer); err != nil || len(rest) > 0 || answer != sent {
		t.Errorf("%+v, %v, %v, want what was sent", answer, rest, err)
	}
}

func FuzzLaunch(f *testing.F) {
	f.Add(wire.Append(nil, &sampleLaunch))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var l Launch
		if rest, err := wire.Decode(b, &l); err == nil && !bytes.Equal(append(wire.Append(nil, &l), rest...), b) {
			t.Errorf("%x is decoded as %+v, which is encoded otherwise", b, l)
		}
	})
}
