package mcp

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// What is no picture is embedded up to these sizes, in bytes.
const (
	maxEmbedded    = 256 << 10
	maxAllEmbedded = 1 << 20
)

// An artifactNote describes an artifact, whether its content is there or not.
type artifactNote struct {
	Name   string `json:"name"`
	MIME   string `json:"mime"`
	Bytes  int    `json:"bytes"`
	Title  string `json:"title,omitempty"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	// Omitted says why the content is not.
	Omitted string `json:"omitted,omitempty"`
}

// result lays out a result: pictures in their order, the outcome as JSON, and what else
// the code has made as embedded resources. It notes all of them in the outcome.
func (c Config) result(out *outcome, made []llmsandbox.Artifact, dropped []string) *sdk.CallToolResult {
	var pictures, others []sdk.Content
	var pictureBytes int64
	embedded := 0
	for i, a := range made {
		note := artifactNote{Name: line(a.Name), MIME: a.MIME, Bytes: len(a.Data), Title: line(a.Title), Width: a.Width, Height: a.Height}
		switch {
		case isPicture(a.MIME):
			switch size := int64(len(a.Data)); {
			case len(pictures) == c.MaxImages:
				note.Omitted = "a result has at most " + count(c.MaxImages, "picture")
			case pictureBytes+size > c.MaxImageBytes:
				note.Omitted = "the pictures of a result have at most " + bytesize.Format(c.MaxImageBytes)
			default:
				pictureBytes += size
				pictures = append(pictures, &sdk.ImageContent{Data: a.Data, MIMEType: a.MIME})
			}
		case len(a.Data) > maxEmbedded || embedded+len(a.Data) > maxAllEmbedded:
			note.Omitted = "files of a result have at most " + bytesize.Format(maxEmbedded) + " each and " + bytesize.Format(maxAllEmbedded) + " in all"
		default:
			embedded += len(a.Data)
			uri := fmt.Sprintf("sandbox://artifacts/%d/%s", i+1, url.PathEscape(note.Name))
			others = append(others, &sdk.EmbeddedResource{Resource: resource(uri, a.MIME, a.Data)})
		}
		out.Artifacts = append(out.Artifacts, note)
	}
	for i, d := range dropped {
		if i == maxNotes {
			out.note("artifacts: %d more are left out", len(dropped)-i)
			break
		}
		out.note("artifacts: %s", line(d))
	}
	return &sdk.CallToolResult{
		IsError: out.ours(),
		Content: slices.Concat(pictures, []sdk.Content{&sdk.TextContent{Text: jsonText(out)}}, others),
	}
}

// isPicture reports which artifacts a client can be expected to show a model as they are.
func isPicture(mime string) bool { return mime == artifact.PNG || mime == artifact.JPEG }

// resource is a file's content as the protocol has it. Text is clean, and all of it data.
func resource(uri, mime string, data []byte) *sdk.ResourceContents {
	r := &sdk.ResourceContents{URI: uri, MIMEType: mime}
	if strings.HasPrefix(mime, "text/") || mime == artifact.SVG || mime == artifact.JSON {
		r.Text = clean(string(data))
	} else {
		r.Blob = data
	}
	return r
}
