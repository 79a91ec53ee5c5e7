package language

// Details are what a person or a model wants to know of a language before writing code
// for the sandbox. Values are immutable.
type Details struct {
	// UseCases are what it is good for here, a few words each.
	UseCases []string
	// PackageManager is what installs libraries: "pip"; empty: nothing does.
	PackageManager string
	// Version is the command that prints the toolchain's version in its first line. Where
	// its program has alternatives in Language.Programs, one of them will do.
	Version []string
	// Known are libraries that images often bring along, as their users name them, and
	// Present is the command that prints those of them that are there, one a line; nil: they cannot be listed.
	Known   []string
	Present func(names []string) []string
	// Examples are whole programs.
	Examples []Example
}

// An Example is a program that runs in the sandbox as it stands.
type Example struct {
	Title       string
	Description string
	Code        string
	// Libraries are the ones of Known that it needs.
	Libraries []string
}
