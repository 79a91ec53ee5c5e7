package agentproto

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/llmsandbox/llmsandbox/internal/wire"
)

// kinds makes every message type, by name.
var kinds = map[string]struct {
	zero func() Message
	draw func(*rapid.T) Message
}{}

func addKind[T any, P interface {
	*T
	Message
}]() {
	name := reflect.TypeFor[T]().Name()
	k := kinds[name]
	k.zero = func() Message { return P(new(T)) }
	k.draw = func(t *rapid.T) Message {
		v := rapid.Make[T]().Draw(t, "message")
		return P(&v)
	}
	kinds[name] = k
}

func init() {
	addKind[Hello]()
	addKind[Empty]()
	addKind[StartRequest]()
	addKind[Started]()
	addKind[Exit]()
	addKind[AttachRequest]()
	addKind[LogsRequest]()
	addKind[Output]()
	addKind[ProcessInfo]()
	addKind[ProcessList]()
	addKind[ProcessCount]()
	addKind[SignalRequest]()
	addKind[KillRequest]()
	addKind[ResizeRequest]()
	addKind[DeadlineRequest]()
	addKind[Deadline]()
	addKind[WinSize]()
	addKind[FileInfo]()
	addKind[PathRequest]()
	addKind[FileList]()
	addKind[MkdirRequest]()
	addKind[RemoveRequest]()
	addKind[RenameRequest]()
	addKind[ChmodRequest]()
	addKind[ReadRequest]()
	addKind[WriteRequest]()
	addKind[TarOutRequest]()
	addKind[TarInRequest]()
	addKind[TarRootRequest]()
	addKind[TarResult]()
	addKind[WatchRequest]()
	addKind[WatchEvent]()
	addKind[DialRequest]()
	addKind[ListenRequest]()
	addKind[Listening]()
	addKind[Connection]()
	addKind[AcceptRequest]()
	addKind[FindRequest]()
	addKind[Found]()
	addKind[Error]()
}

func TestMessageRoundTrip(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := k.draw(t)
				b := Marshal(want)
				for _, junk := range []string{"", "\xff\x00 added by a later version"} {
					got := k.zero()
					if err := Unmarshal(append(b[:len(b):len(b)], junk...), got); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("differs (-want +got):\n%s", diff)
					}
				}
				if len(b) > 0 {
					cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
					if err := Unmarshal(b[:cut], k.zero()); err == nil {
						t.Fatalf("%d of %d bytes were taken for a whole message, want an error", cut, len(b))
					}
				}
			})
		})
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	huge := appendUint(nil, uint64(1)<<40)
	for _, c := range []struct {
		name string
		b    []byte
		m    Message
	}{
		{"string longer than the input", append(huge, "abc"...), &PathRequest{}},
		{"list longer than the input", append(huge, make([]byte, 100)...), &StartRequest{}},
		{"list over the limit", append(appendUint(nil, uint32(wire.MaxList+1)), make([]byte, 4*wire.MaxList)...), &StartRequest{}},
		{"list whose elements cannot fit", append(appendUint(nil, uint32(50)), make([]byte, 100)...), &FileList{}},
		{"bool of 2", []byte{1, 'a', 2, 0}, &RemoveRequest{}},
		{"uint16 of 65536", appendUint(nil, uint32(1<<16)), &DialRequest{}},
		{"uint32 of 1<<32", append(appendText(nil, "p"), appendUint(nil, uint64(1)<<32)...), &ChmodRequest{}},
		{"uint64 that overflows", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, &KillRequest{}},
		{"int64 that overflows", append([]byte{0, 1, 1, 1}, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1), &FileInfo{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Unmarshal(c.b, c.m)
			if _, ok := err.(*ProtocolError); !ok {
				t.Fatalf("%v, want a *ProtocolError", err)
			}
			t.Log(err)
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for name, k := range kinds {
		f.Add(name, Marshal(k.zero()))
	}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		k, ok := kinds[name]
		if !ok {
			return
		}
		m := k.zero()
		if Unmarshal(b, m) != nil {
			return
		}
		again := k.zero()
		if err := Unmarshal(Marshal(m), again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("differs (-want +got):\n%s", diff)
		}
	})
}

// appendUint and appendText write fields as a message has them.
func appendUint[T uint32 | uint64](b []byte, v T) []byte {
	return binary.AppendUvarint(b, uint64(v))
}

func appendText(b []byte, s string) []byte { return append(appendUint(b, uint64(len(s))), s...) }
