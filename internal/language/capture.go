package language

// Capture is how a language's artifacts are caught without a change to the program:
// files that are there before it starts, and environment that makes the interpreter
// find them. A program that plots nothing must not feel it.
type Capture struct {
	Files []File
	Env   []string
}

// CaptureSource is what a capture is made from.
type CaptureSource struct {
	// Dir is the capture directory of one run or kernel, which exists: artifacts and their
	// descriptions go there, in the form that package artifact reads.
	Dir string
	// Support is a directory for the capture's own files, private to the run or kernel.
	Support string
	// Unshown also captures figures that the program made and never showed.
	Unshown bool
	// MaxCount and MaxBytes are where the capture stops, so that a sandbox's disk is
	// not filled with what no result carries; 0: where the language likes.
	MaxCount int
	MaxBytes int64
	// Ahead, when set, is the main file, which is empty: the interpreter is started before
	// its code is known. Once it is ready it writes the line "ready" to descriptor 4. From
	// 3 it reads the code, as a line with its size in bytes and then so many, and writes it
	// into that file; then it writes the line "begun", closes both and goes on as if it had
	// only been started now. Only for a Language that says Ahead.
	Ahead string
	// Marker is a file that what the program makes is younger than.
	Marker string
	// Current returns a variable's value as it is without the capture.
	Current func(name string) string
}
