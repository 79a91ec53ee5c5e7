package apitypes

import "time"

// NewVolume asks for a volume.
type NewVolume struct {
	Name   string            `json:"name" maxLength:"46" pattern:"^[a-z0-9][a-z0-9_.-]*$" doc:"Unique among the project's volumes" example:"cache"`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Kept with the volume"`
	Size   int64             `json:"size_bytes,omitempty" minimum:"0" doc:"How much it can hold. It is refused where the backend cannot hold the volume to that"`
}

// A Volume is a directory that stays until it is removed.
type Volume struct {
	Name    string            `json:"name" example:"cache"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	Size    int64             `json:"size_bytes,omitempty" doc:"How much it can hold; left out where nothing bounds that"`
}

// Volumes are those of a project, sorted by name.
type Volumes struct {
	Volumes []Volume `json:"volumes" nullable:"false"`
}

// A VolumeMount is where a sandbox has a volume.
type VolumeMount struct {
	Name     string `json:"name" maxLength:"46" doc:"Of a volume of the project" example:"cache"`
	Target   string `json:"path" maxLength:"4096" doc:"Absolute, below /sandbox or a new one" example:"/sandbox/cache"`
	ReadOnly bool   `json:"read_only,omitempty" doc:"Code can read, and not write"`
}
