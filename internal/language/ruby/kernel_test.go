//go:build unix

package ruby

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State:     []string{"require 'set'\nx = 21; @y = 2\ndef f(a) = a * 2\nclass Box; attr_reader :v; def initialize(v) = @v = v; end", "puts \"Result: #{f(x)}\"; Box.new(x * @y).v"},
		Out:       "Result: 42\n",
		Value:     "42",
		Fails:     "a = 1\n\nraise ArgumentError, \"no #{a}\"",
		Failure:   [3]string{"ArgumentError", "no 1", "cell[1]:3:in "},
		Syntax:    "b = 1\ndef (",
		SyntaxAt:  "cell[1]:2",
		Sleep:     "puts 'go'; sleep",
		Loop:      "puts 'go'; loop {}",
		Stderr:    "warn 'careful'",
		Child:     "system('echo child; echo fault >&2; ls /proc/self/fd')",
		Input:     "print 'name? '; name = gets.chomp; 'hello ' + name",
		InputIs:   "\"hello Ann\"",
		Exit:      "at_exit { puts 'bye' }; exit 3",
		Crash:     "Process.kill(:KILL, $$); sleep",
		Define:    "long_name = 'text'",
		Complete:  "long_n",
		Completes: "long_name",
		Member:    "long_name.upca",
		MemberIs:  "upcase",
		Inspect:   "long_name",
		Inspects:  "String",
		Variable:  [2]string{"long_name", "String"},
	})
}

func TestKernelCells(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	if stderr := k.Show([][3]string{
		{"defined?(JSON)", "", ""},
		{"$g = :sym", ":sym", ""},
		{"__FILE__ + ':' + __LINE__.to_s", "\"cell[3]:1\"", ""},
		{"nil", "", ""},
		{"\"caf\\u00e9 \\\"q\\\" \\x00\"", "\"café \\\"q\\\" \\u0000\"", ""},
		{"\"\\xff\".b", "\"\\xFF\"", ""},
		{"'x' * 10", "\"xxxxxxxxxx\"", ""},
		{"$stdout.write('y' * 300000)", "300000", strings.Repeat("y", 300000)},
		{"require 'stringio'; $stdout = StringIO.new; puts 'lost'; $stdout = STDOUT; nil", "", ""},
		{"fork { puts 'forked' }; Process.wait; nil", "", "forked\n"},
	}); stderr != "" {
		t.Errorf("they wrote %.300q to stderr, want empty", stderr)
	}
	// Ruby 3.4 writes it in another way.
	if e := k.MustRun("[1, [2, { a: nil }]]"); strings.ReplaceAll(e.Value["text/plain"], "{a: nil}", "{:a=>nil}") != "[1, [2, {:a=>nil}]]" {
		t.Errorf("%q, want [1, [2, {:a=>nil}]]", e.Value)
	}
	if e := k.Run("def deep(n) = n.zero? ? raise('deep') : deep(n - 1)\n\ndeep(2)"); e.Failure == nil || strings.Count(e.Failure.Traceback, "cell[12]:") != 4 || strings.Contains(e.Failure.Traceback, "kernel.rb") {
		t.Errorf("%+v, want Failure not nil, strings.Count(e.Failure.Traceback, \"cell[12]:\") = 4, Traceback without \"kernel.rb\"", e.Failure)
	}
	k.Input = []string{"one", "two"}
	if e := k.MustRun("STDIN.each_line.map(&:chomp)"); e.Value["text/plain"] != `["one", "two"]` {
		t.Errorf("%+v, want e.Value[\"text/plain\"] = \"[\\\"one\\\", \\\"two\\\"]\"", e.Value)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "1+1", 100))
}
