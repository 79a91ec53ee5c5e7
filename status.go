package llmsandbox

// A Status is what became of a run. There is exactly one, and it is observed,
// never guessed.
type Status string

// The statuses.
const (
	// StatusOK: the program ended by itself with exit code 0.
	StatusOK Status = "ok"
	// StatusError: the program ended by itself with another exit code, or its
	// compilation did.
	StatusError Status = "error"
	// StatusTimeout: the run's timeout ended it.
	StatusTimeout Status = "timeout"
	// StatusOutOfMemory: the kernel killed the program, or a process of it
	// without which it failed, for exceeding the memory limit.
	StatusOutOfMemory Status = "out_of_memory"
	// StatusOutputLimit: the program wrote more than Limits.Output. What is over that is
	// dropped, and what still ran was killed.
	StatusOutputLimit Status = "output_limit"
	// StatusKilled: a signal ended the program.
	StatusKilled Status = "killed"
	// StatusRefused: a policy refused the code; nothing was run.
	StatusRefused Status = "refused"
	// StatusSetupFailed: we failed before the program started. Never the
	// program's fault.
	StatusSetupFailed Status = "setup_failed"
	// StatusLost: the sandbox or its stream went away, and nobody can know.
	StatusLost Status = "lost"
)
