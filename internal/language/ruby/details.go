package ruby

import "github.com/llmsandbox/llmsandbox/internal/language"

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
