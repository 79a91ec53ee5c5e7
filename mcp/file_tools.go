package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of files and lists.
const (
	maxWrite     = 16 << 20 // bytes of content, as text or base64
	maxEntries   = 1000
	defaultLimit = 64 << 10
)

type pathArgs struct {
	SessionID string `json:"session_id" jsonschema:"of create_session"`
	Path      string `json:"path,omitempty" jsonschema:"a folder, relative to the working folder or absolute"`
}

type entryNote struct {
	Name     string `json:"name"`
	Type     string `json:"type" jsonschema:"file, folder, link or other"`
	Size     int64  `json:"size"`
	Modified string `json:"modified" jsonschema:"as in RFC 3339"`
	Link     string `json:"link,omitempty" jsonschema:"where a link leads"`
}

type listing struct {
	Entries []entryNote `json:"entries"`
	Omitted int         `json:"omitted,omitempty" jsonschema:"entries that are not listed"`
}

type writeArgs struct {
	SessionID string `json:"session_id" jsonschema:"of create_session"`
	Path      string `json:"path" jsonschema:"relative to the working folder or absolute; missing folders are made"`
	Content   string `json:"content" jsonschema:"what the file is to hold"`
	Encoding  string `json:"encoding,omitempty" jsonschema:"of content: text, or base64 for other bytes"`
}

type written struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

func (s *Server) addFiles() {
	add(s, tool{
		name: "list_files", title: "List files of a session", description: "List a folder of a session's sandbox.",
		hints: hints{readOnly: true, idempotent: true},
		bounds: func(p properties) {
			boundPath(p)
			p["path"].Default = []byte(`"."`)
		},
	}, s.listFiles)
	add(s, tool{
		name: "read_file", title: "Read a file of a session",
		description: "Read a file of a session's sandbox: text as text, a picture as a picture, anything else as base64.",
		hints:       hints{readOnly: true, idempotent: true},
		bounds: func(p properties) {
			boundPath(p)
			p["offset"].Minimum, p["limit"].Minimum = atLeast(0), atLeast(1)
		},
	}, s.readFile)
	add(s, tool{
		name: "write_file", title: "Write a file of a session", description: "Write a file of a session's sandbox. One that is there gets another content.",
		hints: hints{destructive: true, idempotent: true},
		bounds: func(p properties) {
			boundPath(p)
			p["content"].MaxLength = atMost(maxWrite)
			p["encoding"].Enum, p["encoding"].Default = []any{"text", "base64"}, []byte(`"text"`)
		},
	}, s.writeFile)
}

func (s *Server) listFiles(ctx context.Context, c *call, in pathArgs) (*sdk.CallToolResult, listing, error) {
	one, done, err := s.sessions.use(c.owner, in.SessionID)
	if err != nil {
		return nil, listing{}, err
	}
	defer done()
	files, err := one.Value.sandbox.ListDir(ctx, in.Path)
	if err != nil {
		return nil, listing{}, err
	}
	out := listing{Entries: []entryNote{}}
	for i, f := range files {
		if i == maxEntries {
			out.Omitted = len(files) - i
			break
		}
		kind := "other"
		switch {
		case f.IsDir():
			kind = "folder"
		case f.Link != "":
			kind = "link"
		case f.Mode.IsRegular():
			kind = "file"
		}
		out.Entries = append(out.Entries, entryNote{
			Name: line(f.Name), Type: kind, Size: f.Size, Modified: f.ModTime.UTC().Format(time.RFC3339), Link: line(f.Link),
		})
	}
	return nil, out, nil
}

func (s *Server) writeFile(ctx context.Context, c *call, in writeArgs) (*sdk.CallToolResult, written, error) {
	one, done, err := s.sessions.use(c.owner, in.SessionID)
	if err != nil {
		return nil, written{}, err
	}
	defer done()
	data := []byte(in.Content)
	if in.Encoding == "base64" {
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return nil, written{}, fmt.Errorf("content is not base64 (%w): leave encoding out for text", err)
		}
	}
	if in.Path == "" {
		return nil, written{}, errors.New("path is empty: name the file")
	}
	if err := one.Value.sandbox.WriteFile(ctx, in.Path, data, 0o644); err != nil {
		return nil, written{}, err
	}
	return nil, written{Path: line(in.Path), Bytes: len(data)}, nil
}
