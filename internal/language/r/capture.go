package r

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// The profile that R reads before the program, and what that loads when the program first
// plots.
var (
	//go:embed capture/profile.R
	profile string
	//go:embed capture/capture.R
	library []byte
	//go:embed capture/ahead.R
	waiting string
)

// capture has R read our profile in the site's place.
func capture(src language.CaptureSource) language.Capture { return captureBy(profile, src) }

// ahead also has R wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	c := captureBy(profile+waiting, src)
	c.Files = append(c.Files, language.File{Path: path.Join(src.Support, "ahead"), Mode: 0o644})
	return c
}

func captureBy(text string, src language.CaptureSource) language.Capture {
	text = strings.NewReplacer(
		"@support@", quoted(src.Support), "@directory@", quoted(src.Dir), "@before@", quoted(src.Current("R_PROFILE")),
	).Replace(text)
	file := path.Join(src.Support, "profile.R")
	return language.Capture{
		Files: []language.File{
			{Path: file, Data: []byte(text), Mode: 0o644},
			{Path: path.Join(src.Support, "capture.R"), Data: library, Mode: 0o644},
		},
		Env: []string{"R_PROFILE=" + file},
	}
}

// quoted makes a text fit for a string of R in double quotes.
func quoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
