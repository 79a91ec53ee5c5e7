package apitypes

import "github.com/llmsandbox/llmsandbox"

// NewKernel asks for an interpreter that keeps its state.
type NewKernel struct {
	Language  string            `json:"language,omitempty" maxLength:"64" doc:"Name or alias; the sandbox's where it is left out" example:"python"`
	Env       map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to its environment"`
	Dir       string            `json:"dir,omitempty" maxLength:"4096" doc:"Its first working directory, relative to the sandbox's"`
	Libraries []string          `json:"libraries,omitempty" maxItems:"128" doc:"Installed first" example:"[\"numpy\"]"`
	Plain     bool              `json:"plain,omitempty" doc:"The language's own shell where the sandbox has a richer one: Python without IPython, which opens sooner"`
}

// A Kernel is an interpreter that keeps its state.
type Kernel struct {
	ID       string `json:"id"`
	Language string `json:"language" example:"python"`
	Version  string `json:"version,omitempty" doc:"Of the interpreter" example:"3.13.5"`
	Flavor   string `json:"flavor,omitempty" doc:"Its shell" example:"ipython"`
}

// Kernels are those of a sandbox.
type Kernels struct {
	Kernels []Kernel `json:"kernels" nullable:"false"`
}

// NewCell is code for a kernel.
type NewCell struct {
	Code    string   `json:"code" doc:"What to execute" example:"x = 1"`
	Timeout float64  `json:"timeout_seconds,omitempty" minimum:"0" doc:"Wall time; the sandbox's where it is left out. When it is over, the cell is interrupted, or the kernel's process ended" example:"60"`
	Stdin   []string `json:"stdin,omitempty" maxItems:"1000" doc:"Lines that answer the code's requests for input, in their order; then comes end-of-file"`
}

// A Place is a place in code.
type Place struct {
	Code   string `json:"code"`
	Cursor int    `json:"cursor" minimum:"0" doc:"Counted in code points"`
}

// A Completion is what could stand in a place of code.
type Completion struct {
	Matches []string `json:"matches" nullable:"false"`
	Start   int      `json:"start" doc:"They may take the place of the code from here, counted in code points,"`
	End     int      `json:"end" doc:"to here"`
}

// An Inspection describes what stands in a place of code.
type Inspection struct {
	Text string `json:"text" doc:"Documentation, signature or value; empty where nothing is known"`
}

// Variables are what cells have defined.
type Variables struct {
	Variables []llmsandbox.Variable `json:"variables" nullable:"false"`
}
