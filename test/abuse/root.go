package abuse

import _ "embed"

// AsRoot is a Python program that tries as root of a sandbox what would reach beyond it. It prints a line that begins with
// "reached: " for each try that gets through, and then "end". It writes to /sandbox, whose disk limit is 32 MiB.
//
//go:embed root.py
var AsRoot string
