// Package collect takes what a run has produced out of its sandbox: what a language's
// capture put into a capture directory, and files that the program wrote into its artifacts
// directory.
//
// A capture directory holds, per artifact, NNNNNN.data with the content, then NNNNNN.json
// with its description, which is written last and by a rename. The number orders. A
// description is an object with the fields of artifact.Artifact but "data", and with
// "also": [{"mime": ..., "file": "NNNNNN.1.data"}]. A file named "dropped" has a line for
// each thing that the capture left out.
//
// All of it is the program's: it is bounded, checked, and read without following links.
package collect
