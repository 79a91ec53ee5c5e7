package e2b

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/filesystem"
)

// files is a client of the sandbox's files, of the form of SDKs.
func (b *box) files() filesClient { return filesClient{b} }

func stat(t *testing.T, b *box, path string) *filesystem.EntryInfo {
	t.Helper()
	res, err := b.files().Stat(testContext(t), connect.NewRequest(&filesystem.StatRequest{Path: path}))
	if err != nil {
		t.Fatal(err)
	}
	return res.Msg.GetEntry()
}

// TestEntries: entries are in the words that SDKs know, and links tell where they lead.
func TestEntries(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	b.write("f.txt", "content")
	b.shell("mkdir dir; ln -s ../dir/../f.txt dir/link; ln -s dir linked; ln -s nowhere dangling; ln -s loop loop; mkfifo fifo; chmod 4711 dir")
	for path, want := range map[string]string{
		"f.txt":              "f.txt /home/user/f.txt FILE_TYPE_FILE 644 -rw-r--r-- user user -> ",
		"/home/user/./dir":   "dir /home/user/dir FILE_TYPE_DIRECTORY 711 drwx--x--x user user -> ",
		"~/linked":           "linked /home/user/linked FILE_TYPE_DIRECTORY 711 Lrwxrwxrwx user user -> /home/user/dir",
		"linked/link":        "link /home/user/linked/link FILE_TYPE_FILE 644 Lrwxrwxrwx user user -> /home/user/f.txt",
		"dangling":           "dangling /home/user/dangling FILE_TYPE_UNSPECIFIED 777 Lrwxrwxrwx user user -> /home/user/dangling",
		"loop":               "loop /home/user/loop FILE_TYPE_UNSPECIFIED 777 Lrwxrwxrwx user user -> /home/user/loop",
		"fifo":               "fifo /home/user/fifo FILE_TYPE_UNSPECIFIED 644 ?rw-r--r-- user user -> ",
		"/":                  "/ / FILE_TYPE_DIRECTORY",
		"../../../../../tmp": "tmp /tmp FILE_TYPE_DIRECTORY",
	} {
		e := stat(t, b, path)
		got := strings.Join([]string{
			e.GetName(), e.GetPath(), e.GetType().String(), octal(e.GetMode()), e.GetPermissions(), e.GetOwner(), e.GetGroup(), "->", e.GetSymlinkTarget(),
		}, " ")
		if !strings.HasPrefix(got, want) || e.GetModifiedTime() == nil {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		if e.GetType() == filesystem.FileType_FILE_TYPE_DIRECTORY && e.GetSize() <= 0 {
			t.Errorf("%s: size %d, want more than 0", path, e.GetSize())
		}
	}
	_, text := b.do(envd, http.MethodPost, "/filesystem.Filesystem/Stat", "application/json", `{"path":"f.txt"}`)
	for _, want := range []string{`"type":"FILE_TYPE_FILE"`, `"size":"7"`} {
		if !strings.Contains(strings.ReplaceAll(text, " ", ""), want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

func octal(n uint32) string {
	digits := ""
	for ; n > 0; n /= 8 {
		digits = string(rune('0'+n%8)) + digits
	}
	return digits
}

// TestLists: depth, order, links as prefixes, and names that are no text.
func TestLists(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	b.shell("mkdir -p a/b/c z; touch a/b/f a/a.txt a.txt; ln -s /home/user/a z/l; touch $(printf 'z/\\377')")
	for _, test := range []struct {
		path  string
		depth uint32
		want  string
	}{
		{"", 0, "a a.txt z"},
		{"/home/user", 1, "a a.txt z"},
		{"a", 2, "a/a.txt a/b a/b/c a/b/f"},
		{"~", 9, "a a/a.txt a/b a/b/c a/b/f a.txt z z/l z/\uFFFD"},
		{"z/l/", 2, "z/l/a.txt z/l/b z/l/b/c z/l/b/f"},
	} {
		res, err := b.files().ListDir(testContext(t), connect.NewRequest(&filesystem.ListDirRequest{Path: test.path, Depth: test.depth}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range res.Msg.GetEntries() {
			got = append(got, strings.TrimPrefix(e.GetPath(), "/home/user/"))
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s to %d: -want +got: %s", test.path, test.depth, diff)
		}
	}
	b.shell("mkdir many; cd many; seq 100 | while read n; do mkdir $n; (cd $n; touch $(seq 250)); done")
	_, err := b.files().ListDir(testContext(t), connect.NewRequest(&filesystem.ListDirRequest{Path: "many", Depth: 2}))
	if connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("more than an answer has: error %v, want out_of_range", err)
	}
}

// TestChanges: directories are made, files moved and removed, with the codes that SDKs know.
func TestChanges(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	b.write("f.txt", "content")
	b.shell("ln -s dir link")
	files := b.files()
	mkdir := func(p string) error {
		_, err := files.MakeDir(testContext(t), connect.NewRequest(&filesystem.MakeDirRequest{Path: p}))
		return err
	}
	move := func(from, to string) error {
		res, err := files.Move(testContext(t), connect.NewRequest(&filesystem.MoveRequest{Source: from, Destination: to}))
		if err == nil && res.Msg.GetEntry().GetPath() == "" {
			t.Errorf("move %s: %s, want an entry", from, protojson.Format(res.Msg))
		}
		return err
	}
	remove := func(p string) error {
		_, err := files.Remove(testContext(t), connect.NewRequest(&filesystem.RemoveRequest{Path: p}))
		return err
	}
	as := func(user string) error {
		req := connect.NewRequest(&filesystem.StatRequest{Path: "x"})
		r := &http.Request{Header: req.Header()}
		r.SetBasicAuth(user, "")
		_, err := files.Stat(testContext(t), req)
		return err
	}
	const none = connect.Code(0)
	for _, test := range []struct {
		what string
		err  error
		want connect.Code
	}{
		{"make", mkdir("dir/sub"), none},
		{"make again", mkdir("dir/sub/"), connect.CodeAlreadyExists},
		{"make by a link", mkdir("link"), connect.CodeAlreadyExists},
		{"make where a file is", mkdir("f.txt"), connect.CodeInvalidArgument},
		{"make below a file", mkdir("f.txt/sub"), connect.CodeInvalidArgument},
		{"list a file", func() error {
			_, err := files.ListDir(testContext(t), connect.NewRequest(&filesystem.ListDirRequest{Path: "f.txt"}))
			return err
		}(), connect.CodeInvalidArgument},
		{"list nothing", func() error {
			_, err := files.ListDir(testContext(t), connect.NewRequest(&filesystem.ListDirRequest{Path: "none"}))
			return err
		}(), connect.CodeNotFound},
		{"stat nothing", as("user"), connect.CodeNotFound},
		{"stat as root", as("root"), connect.CodeNotFound},
		{"stat as nobody else", as("eve"), connect.CodeUnauthenticated},
		{"stat a name with a NUL", mkdir("a\x00b"), connect.CodeInvalidArgument},
		{"move", move("f.txt", "new/dir/g.txt"), none},
		{"move nothing", move("f.txt", "h.txt"), connect.CodeNotFound},
		{"move to itself", move("new/dir/g.txt", "new/dir/g.txt"), none},
		{"move to another mount", move("new/dir/g.txt", "/tmp/g.txt"), none},
		{"move a directory", move("dir", "new/dir2"), none},
		{"move it there", move("/tmp/g.txt", "new/dir2"), connect.CodeInvalidArgument},
		{"remove", remove("new"), none},
		{"remove nothing", remove("new"), none},
		{"remove all", remove("/"), connect.CodeInvalidArgument},
	} {
		switch {
		case test.want == none && test.err != nil:
			t.Errorf("%s: %v, want no error", test.what, test.err)
		case test.want != none && connect.CodeOf(test.err) != test.want:
			t.Errorf("%s: %v, want %v", test.what, test.err, test.want)
		}
	}
	if got := b.shell("ls; cat /tmp/g.txt"); got != "link\ncontent" {
		t.Errorf("got %q, want what is left", got)
	}
}

// happened are the names and types of those that a watcher has.
func happened(ctx context.Context, t *testing.T, files filesClient, id string) string {
	t.Helper()
	res, err := files.GetWatcherEvents(ctx, connect.NewRequest(&filesystem.GetWatcherEventsRequest{WatcherId: id}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range res.Msg.GetEvents() {
		got = append(got, event(e))
	}
	return strings.Join(got, ", ")
}

func event(e *filesystem.FilesystemEvent) string {
	text := e.GetName() + " " + strings.ToLower(strings.TrimPrefix(e.GetType().String(), "EVENT_TYPE_"))
	if e.GetEntry() != nil {
		text += " " + e.GetEntry().GetPath()
	}
	return text
}

// TestPolledWatchers: what a client does is in the answer to its next question.
func TestPolledWatchers(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, files := testContext(t), b.files()
	b.shell("mkdir dir; ln -s dir link; : > dir/old")
	watch := func(path string, recursive, entries bool) (string, error) {
		res, err := files.CreateWatcher(ctx, connect.NewRequest(&filesystem.CreateWatcherRequest{Path: path, Recursive: recursive, IncludeEntry: entries}))
		if err != nil {
			return "", err
		}
		return res.Msg.GetWatcherId(), nil
	}
	flat, err := watch("dir/", false, false)
	if err != nil {
		t.Fatal(err)
	}
	deep, err := watch("link", true, true)
	if err != nil {
		t.Fatal(err)
	}
	const link = "/home/user/link/"
	for _, step := range []struct {
		what       string
		do         func()
		flat, deep string
	}{
		{"nothing", func() {}, "", ""},
		{"a new file", func() { b.write("dir/f", "x") }, "f create, f chmod, f write", "f create " + link + "f, f chmod " + link + "f, f write " + link + "f"},
		{"an old one", func() { b.write("/home/user/dir/old", "y") }, "old write", "old write " + link + "old"},
		{"an empty one", func() { b.write("dir/e", "") }, "e create, e chmod", "e create " + link + "e, e chmod " + link + "e"},
		{"a directory", func() {
			if _, err := files.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: "dir/sub"})); err != nil {
				t.Fatal(err)
			}
		}, "sub create", "sub create " + link + "sub"},
		{"a rename", func() {
			if _, err := files.Move(ctx, connect.NewRequest(&filesystem.MoveRequest{Source: "dir/f", Destination: "dir/h"})); err != nil {
				t.Fatal(err)
			}
		}, "f rename, h create", "f rename, h create " + link + "h"},
		{"a removal", func() {
			if _, err := files.Remove(ctx, connect.NewRequest(&filesystem.RemoveRequest{Path: "link/h"})); err != nil {
				t.Fatal(err)
			}
		}, "h remove", "h remove"},
	} {
		step.do()
		if got := happened(ctx, t, files, flat); got != step.flat {
			t.Errorf("%s: got %s, want %s", step.what, got, step.flat)
		}
		if got := happened(ctx, t, files, deep); got != step.deep {
			t.Errorf("%s, with all below: got %s, want %s", step.what, got, step.deep)
		}
	}
	b.write("dir/new/file", "x")
	if got := happened(ctx, t, files, flat); got != "new create" {
		t.Errorf("got %s, want new create", got)
	}
	b.write("link/g", strings.Repeat("x", 1<<20))
	if got := happened(ctx, t, files, flat); got != "g create, g chmod, g write" { // and what is written after that, later
		t.Errorf("got %s, want one event of each type", got)
	}
	for path, want := range map[string]connect.Code{"none": connect.CodeNotFound, "dir/old": connect.CodeInvalidArgument} {
		if _, err := watch(path, false, false); connect.CodeOf(err) != want {
			t.Errorf("watch %s: error %v, want %v", path, err, want)
		}
	}
	for _, want := range []connect.Code{0, connect.CodeNotFound} {
		_, err := files.RemoveWatcher(ctx, connect.NewRequest(&filesystem.RemoveWatcherRequest{WatcherId: flat}))
		if want == 0 && err != nil || want != 0 && connect.CodeOf(err) != want {
			t.Errorf("remove: error %v, want %v", err, want)
		}
	}
	for n := 1; ; n++ {
		_, err := watch("dir", false, false)
		if n == maxWatchers {
			if connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("one more than may be: error %v, want resource_exhausted", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatchStreams: a stream begins with its start, tells what happens, and is cut when the sandbox ends.
func TestWatchStreams(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	ctx, files := testContext(t), b.files()
	req := connect.NewRequest(&filesystem.WatchDirRequest{Path: ".", Recursive: true})
	req.Header().Set("Keepalive-Ping-Interval", "1")
	stream, err := files.WatchDir(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // it has ended
	if !stream.Receive() || stream.Msg().GetStart() == nil {
		t.Fatalf("first %v, error %v, want the start", stream.Msg(), stream.Err())
	}
	b.write("d/f", "x")
	for alive, seen := false, false; !alive || !seen; {
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
		alive = alive || stream.Msg().GetKeepalive() != nil
		if f := stream.Msg().GetFilesystem(); f != nil {
			seen = seen || event(f) == "d/f create"
		}
	}
	removed := make(chan error, 1)
	go func() { removed <- b.service.Remove(ctx, testProject, b.sandbox.ID()) }()
	for stream.Receive() { // until it is cut
	}
	if stream.Err() == nil {
		t.Error("the stream came to its end, want it cut: SDKs take an end for one that was meant")
	}
	if status, text := b.do(envd, http.MethodGet, "/health", "", ""); status != http.StatusBadGateway {
		t.Errorf("health of a sandbox that is gone: %d, %s, want 502", status, text)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
}
