package apitypes

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

// MaxBody bounds the body of a request that is no upload of a file, in bytes: code, files of a program and its input.
const MaxBody = 8 << 20

// A Program is code with what it is run with.
type Program struct {
	Language  string            `json:"language,omitempty" maxLength:"64" doc:"Name or alias; the sandbox's where it is left out, and python where there is none yet" example:"python"`
	Code      string            `json:"code" doc:"The program" example:"print(1)"`
	Name      string            `json:"name,omitempty" maxLength:"255" doc:"Base name of its main file, for messages"`
	Files     map[string]File   `json:"files,omitempty" maxProperties:"1000" doc:"Other files of the program by their relative path. With files, it has a directory of its own"`
	Args      []string          `json:"args,omitempty" maxItems:"1000" doc:"Its arguments"`
	Stdin     string            `json:"stdin,omitempty" doc:"Its input"`
	Env       map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to its environment"`
	Dir       string            `json:"dir,omitempty" maxLength:"4096" doc:"Its working directory, relative to the sandbox's"`
	Libraries []string          `json:"libraries,omitempty" maxItems:"128" doc:"Installed first" example:"[\"numpy\"]"`
	Timeout   float64           `json:"timeout_seconds,omitempty" minimum:"0" doc:"Wall time, its compilation included; the sandbox's where it is left out" example:"60"`
	Artifacts string            `json:"artifacts,omitempty" enum:"inline,reference" doc:"inline: the result has their content; reference: it has paths to fetch it from, for ten minutes, as far as the server has room" example:"inline"`
}

// A OneShot is a program that has a sandbox of its own.
type OneShot struct {
	Program
	Image       string        `json:"image,omitempty" doc:"One that the operator allows, or project: and the name of one of the project; the server's own where it is left out" maxLength:"512"`
	Environment string        `json:"environment,omitempty" maxLength:"64" doc:"Name of a Python environment of the server" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Limits      SandboxLimits `json:"limits,omitempty"`
	Network     *Network      `json:"network,omitempty" doc:"Nothing where it is left out"`
	Volumes     []VolumeMount `json:"volumes,omitempty" maxItems:"16" doc:"Volumes of the project, in which files stay"`
}

// A Command is a program of the sandbox with its arguments, or a line for its shell.
type Command struct {
	Argv    []string          `json:"argv,omitempty" maxItems:"1000" minItems:"1" doc:"The program and its arguments; or shell" example:"[\"ls\",\"-l\"]"`
	Shell   string            `json:"shell,omitempty" doc:"A line for the sandbox's shell, in place of argv"`
	Stdin   string            `json:"stdin,omitempty" doc:"Its input"`
	Env     map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to its environment"`
	Dir     string            `json:"dir,omitempty" maxLength:"4096" doc:"Its working directory, relative to the sandbox's"`
	Timeout float64           `json:"timeout_seconds,omitempty" minimum:"0" doc:"Wall time; the sandbox's where it is left out"`
}

// A NewProcess is a program that goes on without its client: code with what it is run with, or a program of the sandbox with its arguments.
type NewProcess struct {
	Language  string            `json:"language,omitempty" maxLength:"64" doc:"Of code: name or alias; the sandbox's where it is left out" example:"python"`
	Code      string            `json:"code,omitempty" doc:"The program; or argv" example:"print(1)"`
	Argv      []string          `json:"argv,omitempty" maxItems:"1000" minItems:"1" doc:"A program of the sandbox and its arguments, in place of code" example:"[\"sleep\",\"1\"]"`
	Name      string            `json:"name,omitempty" maxLength:"255" doc:"Of code: base name of its main file, for messages"`
	Files     map[string]File   `json:"files,omitempty" maxProperties:"1000" doc:"Of code: other files of the program by their relative path"`
	Args      []string          `json:"args,omitempty" maxItems:"1000" doc:"Of code: its arguments"`
	Libraries []string          `json:"libraries,omitempty" maxItems:"128" doc:"Of code: installed first" example:"[\"numpy\"]"`
	Stdin     string            `json:"stdin,omitempty" doc:"Its input, at most 64 KiB"`
	StdinOpen bool              `json:"stdin_open,omitempty" doc:"Its input does not end before a request to …/stdin says so"`
	Env       map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to its environment"`
	Dir       string            `json:"dir,omitempty" maxLength:"4096" doc:"Its working directory, relative to the sandbox's"`
	Timeout   float64           `json:"timeout_seconds,omitempty" minimum:"0" doc:"Wall time, its compilation included; the sandbox's where it is left out" example:"60"`
}

// MaxStdin bounds NewProcess.Stdin, in bytes: so much is on its way to a program as soon as it runs, whatever becomes of the server.
const MaxStdin = 64 << 10

// A ProcessState is how a program is that goes on without its client.
type ProcessState struct {
	ID     uint64             `json:"id,omitempty" doc:"Its number in the sandbox; none where it has ended before it ran, by a policy or a compiler" minimum:"1"`
	State  string             `json:"state" enum:"running,ended"`
	Result *llmsandbox.Result `json:"result,omitempty" doc:"What became of it, once it has ended"`
}

// A Signal is one for a process.
type Signal struct {
	Signal string `json:"signal" maxLength:"32" doc:"Its name or number" example:"SIGINT"`
}

// A Gap tells of output that is no longer kept.
type Gap struct {
	Stream string `json:"stream" enum:"stdout,stderr"`
	Bytes  int64  `json:"bytes" doc:"How many are missing before the next event of that stream"`
}

// A File is the content of a file in a request: a string, or an object with the field base64 for what is not text.
type File []byte

// UnmarshalJSON implements json.Unmarshaler.
func (f *File) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("{")) {
		var binary struct {
			Base64 []byte `json:"base64"`
		}
		if err := json.Unmarshal(b, &binary); err != nil {
			return err
		}
		*f = binary.Base64
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*f = File(text)
	return nil
}

// MarshalJSON implements json.Marshaler. It writes a string where the content is text.
func (f File) MarshalJSON() ([]byte, error) {
	if !utf8.Valid(f) {
		return json.Marshal(map[string][]byte{"base64": f})
	}
	return plainjson.Marshal(string(f))
}
