package apitypes

import "time"

// OwnImage begins the names of a project's images in requests for sandboxes, so that they are not taken for images of a registry.
const OwnImage = "project:"

// NewImage asks for an image of a sandbox.
type NewImage struct {
	Name    string            `json:"name" maxLength:"127" pattern:"^[a-z0-9][a-z0-9_.-]{0,62}(:[a-z0-9][a-z0-9_.-]{0,62})?$" doc:"Unique among the project's images" example:"tools"`
	Labels  map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Kept with the image"`
	Replace bool              `json:"replace,omitempty" doc:"Takes the place of an image of that name"`
}

// An Image is what sandboxes can be created from: project: and its name is their image then.
type Image struct {
	Name    string            `json:"name" example:"tools"`
	ID      string            `json:"id" doc:"The digest of its configuration"`
	Created time.Time         `json:"created"`
	Size    int64             `json:"size_bytes" doc:"Of all its layers"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// A MadeImage is an image that was made of a sandbox.
type MadeImage struct {
	Image

	Skipped []string `json:"skipped,omitempty" doc:"What is not in it, each with its reason; complete up to 100 of them"`
}

// Images are those of a project, sorted by name.
type Images struct {
	Images []Image `json:"images" nullable:"false"`
}
