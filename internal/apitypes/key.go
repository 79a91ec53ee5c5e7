package apitypes

import "time"

// NewKey asks for an API key.
type NewKey struct {
	Name    string   `json:"name" maxLength:"64" pattern:"^[A-Za-z0-9._-]+$" doc:"No other key of the project that is not revoked has it" example:"ci"`
	Scopes  []string `json:"scopes" nullable:"false" minItems:"1" maxItems:"4" enum:"read,write,audit,admin" doc:"What it may be used for: no more than the key of the request" example:"[\"read\",\"write\"]"`
	Expires float64  `json:"expires_seconds,omitempty" minimum:"1" doc:"After how long it ends, not later than the key of the request; as late as may be where it is left out" example:"7776000"`
}

// A Key is an API key, without its secret.
type Key struct {
	ID      string    `json:"id" example:"k3v9x7m2"`
	Name    string    `json:"name" example:"ci"`
	Scopes  []string  `json:"scopes" nullable:"false" enum:"read,write,audit,admin"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero" doc:"When it ends; never where it is left out"`
	Revoked time.Time `json:"revoked,omitzero" doc:"When it was revoked"`
}

// A MadeKey is a new key, with its secret.
type MadeKey struct {
	Key
	Secret string `json:"secret" doc:"What requests bear as their key. It is told here and never again"`
}

// Keys are keys of a project, the newest first.
type Keys struct {
	Keys []Key  `json:"keys" nullable:"false"`
	Next string `json:"next,omitempty" doc:"Where there are more, what after is to be for them"`
}

// Quotas are what a project has of what it may have.
type Quotas struct {
	Sandboxes Quota  `json:"sandboxes"`
	Memory    Quota  `json:"memory_bytes" doc:"Of its sandboxes' limits together"`
	Disk      Quota  `json:"disk_bytes" doc:"Of its sandboxes' limits together"`
	Volumes   *Quota `json:"volumes,omitempty" doc:"Left out where projects have none"`
	Images    *Quota `json:"images,omitempty" doc:"Left out where projects have none"`
	Today     *Today `json:"today,omitempty" doc:"Left out where the server does not count what projects use"`
	Rate      int    `json:"requests_per_second,omitempty" doc:"The most of each key; left out where nothing bounds it"`
}

// Today is what a project has used since the day began, in UTC. Once it has used what it may, it begins nothing more on that day.
type Today struct {
	CPU  Quota     `json:"cpu_ms" doc:"CPU time"`
	Sent Quota     `json:"sent_bytes" doc:"What its sandboxes have sent over their networks"`
	Ends time.Time `json:"ends" doc:"When the next day begins"`
}

// A Quota is what a project has of something.
type Quota struct {
	Used int64 `json:"used"`
	Most int64 `json:"most,omitempty" doc:"What it may have; left out where nothing bounds it"`
}
