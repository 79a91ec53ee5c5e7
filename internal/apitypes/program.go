package apitypes

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
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
}

// A OneShot is a program that has a sandbox of its own.
type OneShot struct {
	Program
	Image       string        `json:"image,omitempty" doc:"One that the operator allows; the server's own where it is left out" maxLength:"512"`
	Environment string        `json:"environment,omitempty" maxLength:"64" doc:"Name of a Python environment of the server" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Limits      SandboxLimits `json:"limits,omitempty"`
	Network     *Network      `json:"network,omitempty" doc:"Nothing where it is left out"`
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
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // which would make code much longer
	err := enc.Encode(string(f))
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
