package mcp

import (
	"encoding/base64"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestFiles(t *testing.T) {
	client := connect(t, newServer(t, Config{MaxText: 1000}), nil)
	id := open(t, client, args{"language": "bash"}).SessionID
	write := func(path, content, encoding string) *sdk.CallToolResult {
		return use(t, client, "write_file", args{"session_id": id, "path": path, "content": content, "encoding": encoding})
	}
	read := func(in args) fileContent {
		in["session_id"] = id
		res := use(t, client, "read_file", in)
		if res.IsError {
			t.Fatalf("%v: %s, want IsError false", in, text(t, res))
		}
		return decode[fileContent](t, res)
	}

	if got := decode[written](t, write("a/b.txt", "héllo", "text")); got.Bytes != 6 || got.Path != "a/b.txt" {
		t.Errorf("%+v, want Bytes = 6, Path = \"a/b.txt\"", got)
	}
	if got := read(args{"path": "a/b.txt"}); got.Content != "héllo" || got.Encoding != "text" || got.MIME != "text/plain" || got.Size != 6 || got.Next != 0 {
		t.Errorf("%+v, want Content = \"héllo\", Encoding = \"text\", MIME = \"text/plain\", Size = 6, Next = 0", got)
	}
	if got := read(args{"path": "a/b.txt", "limit": 2}); got.Content != "h" || got.Next != 1 { // é is not cut
		t.Errorf("%+v, want Content = \"h\", Next = 1", got)
	}
	if got := read(args{"path": "a/b.txt", "offset": 3, "limit": 2}); got.Content != "ll" || got.Next != 5 || got.Offset != 3 {
		t.Errorf("%+v, want Content = \"ll\", Next = 5, Offset = 3", got)
	}
	if got := read(args{"path": "a/b.txt", "offset": 100}); got.Content != "" || got.Bytes != 0 {
		t.Errorf("%+v, want Content empty, Bytes = 0", got)
	}

	write("bytes", base64.StdEncoding.EncodeToString([]byte("\x00\xff\x01")), "base64")
	if got := read(args{"path": "bytes"}); got.Encoding != "base64" || got.Content != "AP8B" || got.Bytes != 3 {
		t.Errorf("%+v, want Encoding = \"base64\", Content = \"AP8B\", Bytes = 3", got)
	}
	wantHas(t, failure(t, write("x", "no base64!", "base64")), "not valid base64")
	failure(t, write("x", "x", "rot13"))

	// A whole file is read piece by piece.
	whole := strings.Repeat("0123456789é\n", 400)
	write("long.txt", whole, "text")
	var got strings.Builder
	for next := int64(0); ; {
		piece := read(args{"path": "long.txt", "offset": next})
		if piece.Bytes > 1000 {
			t.Fatalf("%d bytes, want at most 1000", piece.Bytes)
		}
		got.WriteString(piece.Content)
		if next = piece.Next; next == 0 {
			break
		}
	}
	if got.String() != whole {
		t.Errorf("the pieces are not the whole: got = %v, want %v", got.String(), whole)
	}

	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 2000)
	write("p.png", base64.StdEncoding.EncodeToString([]byte(picture)), "base64")
	res := use(t, client, "read_file", args{"session_id": id, "path": "p.png"})
	if image, ok := res.Content[0].(*sdk.ImageContent); !ok || string(image.Data) != picture || image.MIMEType != "image/png" {
		t.Errorf("%+v, want ok = true, Data = %v, MIMEType = \"image/png\"", res.Content, picture)
	}

	use(t, client, "run_in_session", args{"session_id": id, "code": "ln -s /etc/passwd link; mkfifo pipe; mkdir many; cd many; touch {1..1100}"})
	types := map[string]string{}
	for _, e := range decode[listing](t, use(t, client, "list_files", args{"session_id": id})).Entries {
		types[e.Name] = e.Type
	}
	for name := range types {
		if strings.HasPrefix(name, ".kernel-") || strings.HasPrefix(name, ".run-") {
			t.Errorf("%s is listed, which is the session's own", name)
		}
	}
	for name, want := range map[string]string{"a": "directory", "bytes": "file", "link": "link", "pipe": "other"} {
		if types[name] != want {
			t.Errorf("%s: %q, want %q", name, types[name], want)
		}
	}
	if got := decode[listing](t, use(t, client, "list_files", args{"session_id": id, "path": "many"})); len(got.Entries) != 1000 || got.Omitted != 100 {
		t.Errorf("%d entries, %d omitted, want len(got.Entries) = 1000, Omitted = 100", len(got.Entries), got.Omitted)
	}
	failure(t, use(t, client, "read_file", args{"session_id": id, "path": "pipe"})) // and does not block
	failure(t, use(t, client, "list_files", args{"session_id": id, "path": "missing"}))
}

func TestEditFile(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	id := open(t, client, args{"language": "bash"}).SessionID
	use(t, client, "run_in_session", args{"session_id": id, "code": "printf 'a b a\\n' >f; chmod 700 f"})
	edit := func(old, new string, all bool) *sdk.CallToolResult {
		return use(t, client, "edit_file", args{"session_id": id, "path": "f", "old_text": old, "new_text": new, "replace_all": all})
	}
	wantHas(t, failure(t, edit("a", "c", false)), "occurs 2 times", "replace_all")
	wantHas(t, failure(t, edit("x", "c", true)), "does not occur")
	wantHas(t, failure(t, edit("", "c", true)), "write_file")
	if got := decode[edited](t, edit("b a", "é", false)); got.Replaced != 1 || got.Path != "f" {
		t.Errorf("%+v, want Replaced = 1, Path = \"f\"", got)
	}
	if got := decode[edited](t, edit("é", "a a", true)); got.Replaced != 1 {
		t.Errorf("%+v, want Replaced = 1", got)
	}
	if got := decode[edited](t, edit("a", "", true)); got.Replaced != 3 {
		t.Errorf("%+v, want Replaced = 3", got)
	}
	got := decode[outcome](t, use(t, client, "run_in_session", args{"session_id": id, "code": "cat -A f; stat -c %a f"}))
	if got.Stdout != "  $\n700\n" {
		t.Errorf("%q, want \"  $\\n700\\n\"", got.Stdout)
	}
	wantHas(t, failure(t, use(t, client, "edit_file", args{"session_id": id, "path": "none", "old_text": "a", "new_text": "b"})), "no such file")
}
