// Package ruby describes Ruby.
package ruby

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Language is Ruby.
var Language = language.Language{
	Name: "ruby", Title: "Ruby", Aliases: []string{"rb"},
	Extensions: []string{".rb"}, Shebangs: []string{"ruby"},
	Programs:  [][]string{{"ruby"}},
	Install:   "install it with: apt-get install ruby; or use --image ruby:3",
	Libraries: &libraries,
	Kernel:    kernel,
	Details:   details,
	Ahead:     &language.Ahead{Capture: ahead, Settable: settable, Args: true},
	Scan:      scanCode, ModuleSeparator: "/", LibraryName: libraryName, Missing: &missing,
	Plan: func(src language.Source) (language.Plan, error) {
		return language.Script(src, []string{src.Program("ruby")}, "main.rb", ".rb")
	},
}

var details = language.Details{
	UseCases:       []string{"text processing", "scripts", "small languages of one's own"},
	PackageManager: "gem",
	Version:        []string{"ruby", "--version"},
	Known:          []string{"nokogiri", "rspec", "minitest", "activesupport", "sinatra", "httparty", "rake", "sequel", "numo-narray"},
	Present: func(names []string) []string {
		const find = "ARGV.each { |n| puts n if Gem::Specification.find_all_by_name(n).any? }"
		return append([]string{"ruby", "-e", find, "--"}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "puts \"Hello from Ruby!\"\n"},
		{
			Title: "Count words", Description: "Blocks and hashes.",
			Code: `count = Hash.new(0)
"a b a c a b".split.each { |word| count[word] += 1 }
count.sort_by { |word, n| [-n, word] }.each { |word, n| puts "#{word}: #{n}" }
`,
		},
	},
}

//go:embed ahead.rb
var bootstrap string

// ahead has Ruby wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	before := src.Current("RUBYOPT")
	literal := "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(before) + "'"
	file := path.Join(src.Support, "ahead.rb")
	return language.Capture{
		Files: []language.File{{Path: file, Data: []byte(strings.Replace(bootstrap, "@before@", literal, 1)), Mode: 0o644}},
		Env:   []string{strings.TrimSpace("RUBYOPT=-r" + file + " " + before)},
	}
}

// settable reports whether a variable can be set once the interpreter has started.
func settable(name string) bool { return language.SetLate(name, "RUBY", "GEM", "BUNDLE") }

//go:embed kernel.rb
var kernelDriver []byte

// kernel evaluates cells in one binding. It loads none of Ruby's libraries, so that
// requests come in base64 and a cell must require what it uses.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.rb", kernelDriver)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: []string{src.Program("ruby"), driver.Path}}},
		}, nil
	},
	Interrupt: language.InterruptSignal,
	Base64:    true,
}

var missing = language.Missing{
	Messages: [][2]string{{"cannot load such file -- ", " (LoadError)"}, {"cannot load such file -- ", ""}},
	Libraries: map[string]string{
		"action_controller": "actionpack", "action_view": "actionview", "active_model": "activemodel", "active_record": "activerecord",
		"active_support": "activesupport", "dotenv/load": "dotenv", "google/protobuf": "google-protobuf", "net/scp": "net-scp", "net/sftp": "net-sftp",
		"net/ssh": "net-ssh", "xlsxwriter": "write_xlsx", "zip": "rubyzip",
	},
	Library: func(module string) string {
		name, _, _ := strings.Cut(module, "/")
		return name
	},
}
