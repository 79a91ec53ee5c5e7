//go:build unix

// Package kerneltest runs a kernel's driver outside of any sandbox, as a sandbox would:
// requests on descriptor 3, replies on 4, output cut at the cell's mark.
package kerneltest

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// patience is how long a driver may take for anything, on a machine under load.
const patience = 3 * time.Minute

// Kernel is a driver that runs. It is not safe for concurrent use, but for Interrupt.
type Kernel struct {
	t       testing.TB
	def     *language.Kernel
	cmd     *exec.Cmd
	to      *os.File
	from    *bufio.Reader
	out     [2]*stream
	exited  chan struct{}
	id      int
	told    int        // the cell that was last sent an interrupt request
	mu      sync.Mutex // of writes to the driver
	Version string     // as the driver says
	Dir     string     // the driver's private directory
	Workdir string

	// Input answers what a cell asks for, in order; with none left it gets the end of input.
	Input []string
	// Prompts are what cells asked with.
	Prompts []string
}

// Event is what a driver sends.
type Event struct {
	Event    string
	ID       int
	Language string
	Version  string
	Flavor   string
	Prompt   string
	Password bool
	Status   string
	Count    int
	Value    map[string]string
	Failure  *struct{ Name, Message, Traceback string } `json:"-"`
	Error    json.RawMessage
	ExitCode *int `json:"exit_code"`
	Lost     bool `json:"state_lost"`
	Matches  []string
	Start    int
	End      int
	Text     string
	// Variables are the answer to "variables".
	Variables []struct{ Name, Type, Value string }
	// Stdout and Stderr are the cell's.
	Stdout string `json:"-"`
	Stderr string `json:"-"`
}
