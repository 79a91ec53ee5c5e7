package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// fake is a sandbox's files: those that a search finds, in order of their times.
type fake struct {
	found   agentproto.Found
	content map[string]string
	removed []string
	discard string // what a search was to remove
	fail    error  // of reads
}

func (f *fake) add(dir uint32, path, content string) {
	n := int64(len(f.found.Files) + 1)
	f.found.Files = append(f.found.Files, agentproto.FoundFile{Directory: dir, Path: path, Size: uint64(len(content)), CTimeNanos: n, Inode: uint64(n)})
	if f.content == nil {
		f.content = map[string]string{}
	}
	f.content[[]string{"/capture", "/files"}[dir]+"/"+path] = content
}

func (f *fake) capture(number, description, content string) {
	f.add(captureIndex, number+".data", content)
	f.add(captureIndex, number+".json", description)
}

func (f *fake) Find(_ context.Context, req agentproto.FindRequest) (agentproto.Found, error) {
	f.discard = req.Discard
	return f.found, nil
}

func (f *fake) ReadBelow(_ context.Context, dir, path string, limit int64) ([]byte, error) {
	content, ok := f.content[dir+"/"+path]
	switch {
	case f.fail != nil:
		return nil, f.fail
	case !ok:
		return nil, &agentproto.Error{Code: agentproto.CodeNotFound, Msg: "no such file"}
	case int64(len(content)) > limit:
		return nil, &agentproto.Error{Code: agentproto.CodeTooLarge, Msg: "too large"}
	}
	return []byte(content), nil
}

func (f *fake) Remove(_ context.Context, path string, _ agentclient.RemoveOptions) error {
	f.removed = append(f.removed, path)
	return nil
}

func (f *fake) collect(t *testing.T, maxCount int, maxBytes int64) Result {
	t.Helper()
	res, err := Collect(t.Context(), f, Request{Capture: "/capture", Files: "/files", Discard: "/run", MaxCount: maxCount, MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func names(list []artifact.Artifact) (names []string) {
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

func wantNames(t *testing.T, got []artifact.Artifact, want ...string) {
	t.Helper()
	if !slices.Equal(names(got), want) {
		t.Errorf("%q, want %q", names(got), want)
	}
}

func picture(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLast: where the sandbox ends, all is collected, and nothing removed before.
func TestLast(t *testing.T) {
	f := &fake{}
	f.capture("000001", `{"name": "a.csv", "mime": "text/csv"}`, "a\n")
	req := Request{Capture: "/capture", Files: "/files", Discard: "/run", MaxCount: 1, MaxBytes: 1 << 20}
	res, err := Collect(Last(t.Context()), f, req)
	if err != nil || f.discard != "" || len(f.removed) > 0 {
		t.Errorf("%v; removed %q and %q, want nothing", err, f.discard, f.removed)
	}
	wantNames(t, res.Artifacts, "a.csv")
	if _, err := Collect(t.Context(), f, req); err != nil || f.discard != "/run" || len(f.removed) != 1 {
		t.Errorf("%v; removed %q and %q, want /run", err, f.discard, f.removed)
	}
}

func TestCollect(t *testing.T) {
	shown := picture(t, 30, 20)
	f := &fake{}
	f.add(filesIndex, "first.csv", "a,b\n")
	f.capture("000001", `{"name": "figure-1.png", "mime": "image/png", "source": "matplotlib", "width": 9, "also": [{"mime": "text/csv", "file": "000001.1.data"}]}`, shown)
	f.add(captureIndex, "000001.1.data", "x\n")
	f.add(filesIndex, "sub/copy.png", shown)
	f.add(filesIndex, "../evil\x1b.txt", "text")
	f.capture("000002", `{"name": "b.png", "mime": "image/png"}`, "no picture")
	f.add(captureIndex, "000003.data", "half of one")
	res := f.collect(t, 64, 1<<20)
	wantNames(t, res.Artifacts, "first.csv", "figure-1.png", "evil_.txt", "b.png")
	a := res.Artifacts[1]
	if a.Width != 30 || a.Height != 20 || a.MIME != artifact.PNG || string(a.Data) != shown || len(a.Also) != 1 || string(a.Also[0].Data) != "x\n" || a.Also[0].MIME != artifact.CSV {
		t.Errorf("%+v, want Width = 30, Height = 20, MIME = PNG, Data = %v, len(a.Also) = 1, Data = \"x\\n\", MIME = CSV", a, shown)
	}
	if got := res.Artifacts[3].MIME; got != artifact.Binary {
		t.Errorf("what is no picture is %s, want Binary", got)
	}
	if len(res.Dropped) != 1 || !strings.Contains(res.Dropped[0], "not whole") {
		t.Errorf("%q, want len(res.Dropped) = 1, res.Dropped[0] containing \"not whole\"", res.Dropped)
	}
	if !slices.Equal(f.removed, []string{"/run"}) {
		t.Errorf("removed %q, want [\"/run\"]", f.removed)
	}
}

// TestCollectOfNumbers has files whose times are not in the order of their numbers.
func TestCollectOrder(t *testing.T) {
	f := &fake{}
	f.capture("000002", `{"name": "two"}`, "2")
	f.capture("000001", `{"name": "one"}`, "1")
	wantNames(t, f.collect(t, 64, 1<<20).Artifacts, "one", "two")
}

func TestCollectLimits(t *testing.T) {
	f := &fake{}
	for i := range 10 {
		f.capture(fmt.Sprintf("%06d", i), fmt.Sprintf(`{"name": "c%d"}`, i), fmt.Sprint(i))
	}
	f.add(filesIndex, "file", "x")
	res := f.collect(t, 3, 1<<20)
	wantNames(t, res.Artifacts, "c0", "c1", "c2")
	if len(res.Dropped) != 1 || !strings.Contains(res.Dropped[0], "8 artifacts") {
		t.Errorf("%q, want len(res.Dropped) = 1, res.Dropped[0] containing \"8 artifacts\"", res.Dropped)
	}
	f = &fake{}
	f.capture("000001", `{"name": "large"}`, strings.Repeat("x", 200))
	f.capture("000002", `{"name": "small"}`, strings.Repeat("x", 60))
	f.add(filesIndex, "sparse", strings.Repeat("x", 100))
	f.add(filesIndex, "rest", strings.Repeat("y", 40))
	res = f.collect(t, 64, 100)
	wantNames(t, res.Artifacts, "small", "rest")
	if len(res.Dropped) != 2 || !strings.Contains(res.Dropped[0], "large") || !strings.Contains(res.Dropped[1], "sparse was left out: it has 100 bytes") {
		t.Errorf("%q, want len(res.Dropped) = 2, res.Dropped[0] containing \"large\", res.Dropped[1] containing \"sparse was left out: it has 100 bytes\"", res.Dropped)
	}
	f = &fake{}
	for i := range 100 {
		f.add(filesIndex, fmt.Sprintf("f%02d", i), strings.Repeat("x", 200))
	}
	if res = f.collect(t, 64, 100); len(res.Artifacts) != 0 || len(res.Dropped) != maxSentences+1 {
		t.Errorf("%d sentences: %q, want no Artifacts, len(res.Dropped) = %d", len(res.Dropped), res.Dropped, maxSentences+1)
	}
}

func TestCollectHostile(t *testing.T) {
	f := &fake{}
	f.capture("000001", `{"name": "a"`, "broken description")
	f.capture("000002", `{"name": "b", "also": [{"mime": "text/plain", "file": "../../etc/passwd"}]}`, "b")
	f.add(captureIndex, "000003.json", `{"name": "no content"}`)
	f.add(captureIndex, "000004/000004.json", `{}`)
	f.add(captureIndex, "x.json", `{}`)
	f.add(captureIndex, "dropped", "said\nsaid\n\x1b[2Jred\n"+strings.Repeat("a\n", 5)+"b\nc\nd\ne\nf\ng\nh\ni\n")
	delete(f.content, "/files/gone")
	f.add(filesIndex, "gone", "x")
	delete(f.content, "/files/gone")
	f.found.Truncated = true
	res := f.collect(t, 64, 1<<20)
	wantNames(t, res.Artifacts, "b")
	all := strings.Join(res.Dropped, "\n")
	for _, want := range []string{"000001 was left out: its description", "further form of b", "no content was left out", "gone was left out", "not all new files", "said", "[2Jred", "further notes"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said in:\n%s", want, all)
		}
	}
	if strings.ContainsAny(all, "\x1b\x00") || strings.Count(all, "said") != 1 {
		t.Errorf("%q, want strings.ContainsAny(all, \"\\x1b\\x00\") = false, strings.Count(all, \"said\") = 1", all)
	}
}

func TestCollectOnce(t *testing.T) {
	f, seen := &fake{}, &Seen{}
	f.add(filesIndex, "a", "1")
	request := Request{Capture: "/capture", Files: "/files", MaxCount: 9, MaxBytes: 99, Seen: seen}
	for i, want := range []int{1, 0, 1} {
		if i == 2 {
			f.found.Files[0].CTimeNanos++
		}
		res, err := Collect(t.Context(), f, request)
		if err != nil || len(res.Artifacts) != want {
			t.Errorf("search %d: %q, %v; want %d", i, names(res.Artifacts), err, want)
		}
	}
}

// TestCollectEmptiesDirectory is of a kernel, whose capture directory stays.
func TestCollectEmptiesDir(t *testing.T) {
	f := &fake{}
	f.capture("000001", `{"name": "a"}`, "a")
	f.add(filesIndex, "file", "x")
	if _, err := Collect(t.Context(), f, Request{Capture: "/capture", Files: "/files", MaxCount: 9, MaxBytes: 99}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/capture/000001.data", "/capture/000001.json"}; !slices.Equal(f.removed, want) {
		t.Errorf("removed %q, want %q", f.removed, want)
	}
}

func TestCollectLost(t *testing.T) {
	f := &fake{fail: errors.New("the stream is gone")}
	f.capture("000001", `{"name": "a"}`, "a")
	if res, err := Collect(t.Context(), f, Request{Capture: "/capture", Files: "/files", MaxCount: 9, MaxBytes: 99}); !errors.Is(err, f.fail) || len(res.Artifacts) > 0 {
		t.Errorf("%+v, %v, want %v, no Artifacts", res, err, f.fail)
	}
}
