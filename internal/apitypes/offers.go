package apitypes

// A Template is what many sandboxes have in common, under a name.
type Template struct {
	Name        string            `json:"name" example:"report"`
	Language    string            `json:"language" example:"python"`
	Image       string            `json:"image,omitempty"`
	Environment string            `json:"environment,omitempty"`
	Libraries   []string          `json:"libraries,omitempty"`
	Imports     []string          `json:"imports,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Limits      RunLimits         `json:"limits,omitzero" doc:"Those of the server, where they are smaller"`
	Network     *Network          `json:"network,omitempty"`
}

// Templates are those of a server, by their names.
type Templates struct {
	Templates []Template `json:"templates" nullable:"false"`
}

// An Environment is a set of packages of a language in exact versions, under a name.
type Environment struct {
	Name      string   `json:"name" example:"data-science"`
	Language  string   `json:"language" example:"python"`
	Libraries []string `json:"libraries" nullable:"false" doc:"What it was made for"`
	Packages  []string `json:"packages" nullable:"false" doc:"These, and all that they need" example:"[\"numpy==2.3.5\"]"`
}

// Environments are those of a server, by their names.
type Environments struct {
	Environments []Environment `json:"environments" nullable:"false"`
}

// A Pool are the sandboxes that are kept ready for programs that have one of their own.
type Pool struct {
	Languages []string `json:"languages" nullable:"false" doc:"For which they are kept ready"`
	Kept      int      `json:"kept" doc:"How many of each of these"`
	Ready     int      `json:"ready" doc:"All of them that wait now"`
	Creating  int      `json:"creating" doc:"That are being made now"`
	InUse     int      `json:"in_use" doc:"In which a program runs now"`
	Waiting   int      `json:"waiting" doc:"Programs that wait for one now"`
	Hits      uint64   `json:"hits" doc:"Programs that found one that was ready, since the server was started"`
	Misses    uint64   `json:"misses" doc:"Programs that waited for one"`
}
