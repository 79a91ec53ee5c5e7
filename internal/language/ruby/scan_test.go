package ruby

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	{"require 'net/http'", "import net/http; call require"},
	{"puts 1\nrequire('socket')\n", "call puts; import socket; call require"},
	{"x = 1; Kernel.require \"open3\"", "call require; import open3"},
	{"load 'x.rb'; autoload :Foo, 'net/http'; require_relative 'lib/a'", "import x; call load; import net/http; call autoload; import ./lib/a; call require_relative"},
	{"Kernel.send(:require, 'socket')", "call send; import socket; call require"},
	{"send(:system, 'ls')", "call send; call system"},
	{"\"\".send(:system, 'ls'); 1.__send__(\"ex\" + \"ec\", 'ls')", "call send; call system; call __send__; call exec"},
	{"method(:system).call('ls')", "call method; use system; call system"},
	{"m = method(:system); m.call('ls'); m.('x'); m['y']", "use system; call method; use system; call system; call system; call system"},
	{"Object.const_get('File').delete('x')", "call const_get; use File; call File.delete"},
	{"Object.const_get(\"Net::HTTP\").get(u)", "call const_get; use Net::HTTP; call Net::HTTP.get; call u"},
	{"Object.const_get(x).delete", "call const_get; computed name; call x"},
	{"::File.delete('x'); Object::File.delete 'y'", "call File.delete; call File.delete"},
	{"k = Kernel; k.system 'ls'", "use Kernel; use Kernel; call system"},
	{"F = File; F.delete 'x'; F::delete 'y'", "use File; use File; call File.delete; call File.delete"},
	{"Net::HTTP.get(URI('x'))", "call Net::HTTP.get; call URI"},
	{"system 'ls'; exec('x'); fork { 1 }; eval code", "call system; call exec; call fork; call eval; computed code; call code"},
	{"eval(\"require 'socket'\")", "call eval; import socket; call require"},
	{"eval <<~R\n  system(\"ls\")\nR\nputs 1", "call eval; call system; call puts"},
	{"`ls`; %x(ls); %x{a #{system('b')}}", "call `; call `; call `; call system"},
	{"foo.system('x'); foo&.exec 'y'", "call foo; call foo"},
	{"self.system('x')", "call system"},
	{"def open(x) = x\nopen('y')", ""},
	{"class A\n  def system(x); end\n  def go; system('x'); end\nend\nsystem('y')", "call system"},
	{"class A\n  def system(x); super; end\n  def go; system('x'); end\nend", "call system"},
	{"puts \"#{\"#{system('x')}\"} require 'socket'\"", "call puts; call system"},
	{"x = <<A + <<~'B'\n#{exec 'x'}\nA\n#{exec 'y'}\nB\nfork", "call exec; call fork"},
	{"a = 1\nb = a /system('x')/ 2", "call system; problem"},
	{"puts /system('x')/", "call puts"},
	{"x = y ? ?a : ?b; z = x ? :a : :b; %w[a b].each { |l| require l }", "call y; import a; import b; call require"},
	{"%w(socket open3).each do |l| require l end", "import socket; import open3; call require"},
	{"['socket'].each(&method(:require))", "call method; computed import; use require"},
	{"require x; require \"a#{b}\"; require 'so' 'cket'; require \"so\" + 'cket'", "call require; computed import; call x; call require; computed import; call b; import socket; call require; import socket; call require"},
	{"alias sh system\nsh 'ls'", "call system; call system"},
	{"binding.eval(\"system 'x'\"); b = binding; b.eval(code)", "call binding; call binding.eval; call system; use binding; call binding; call binding.eval; computed code; call code"},
	{"o.instance_eval(\"exec 'x'\"); o.instance_eval { 1 }; C.class_eval code; C.class_eval(&blk)", "call o; call instance_eval; call exec; call o; call instance_eval; call C.class_eval; computed code; call code; call C.class_eval; call blk"},
	{"IO.popen('x'); open(\"|ls\"); Process.spawn('x')", "call IO.popen; call open; call Process.spawn"},
	{"=begin\nsystem('x')\n=end\nexec 'y'\n__END__\nfork", "call exec"},
	{"# system('x')\n\"system('x')\"; 'exec'; :system; %q(exec 'x' (y)); %w(system)", ""},
	{"fork = 1; fork; fork(); systems 'x'; h = {system: 1, :exec => 2}; h[:system]", "call fork; call systems"},
	{"def system_x; end; x.require 'y'; reload 'z'; osx.eval", "call x; call reload; call osx"},
	{"case x when /system('a')/ then exec 'b' end", "call x; call exec"},
	{"puts [1,2].map do |x| system x end", "call puts; call system"},
	{"obj.public_send(name, 1); obj.send(:foo, 1)", "call obj; call public_send; computed name; call name; call obj; call send"},
	{"while x do system 'a' end; fork", "call x; call system; call fork"},
	{"return system(\"x\") if y\nfoo(*args, &:fork)\n-> (x) { exec x }", "call system; call y; call foo; call args; use fork; call exec"},
	{"Kernel::system('x'); Kernel.exec \"y\"; Process::spawn 'z'", "call system; call exec; call Process.spawn"},
	{"@k = Kernel; @k.fork; $k = Kernel; $k.exec 'x'", "use Kernel; computed name; use Kernel; call fork; use Kernel; computed name; use Kernel; call exec"},
	{"String.class_eval { public :system }; ''.system('ls')", "call String.class_eval; call public; use system"},
	{"m = 'soc'; m << 'ket'; require m", "call require; computed import"},
	{"m = \"socket\"; require m; require m.dup", "import socket; call require; import socket; call require"},
	{"Fiddle.dlopen(nil); ObjectSpace.each_object; RubyVM::InstructionSequence.compile(\"fork\").eval", "call Fiddle.dlopen; call ObjectSpace.each_object; call RubyVM::InstructionSequence.compile; call fork"},
	{"x = [1]; x <<\"a\"; y = 4 /2; z = y/2; system 'a' # /", "call system"},
	{"def f(x)\n  x /system('a')/ 1\nend", "call x; problem"},
	{"puts \"a\" if system(\"b\"); exec 'c' unless y", "call puts; call system; call exec; call y"},
	{"class File; def self.open(x) = x; end; open('|ls')", "call open"},
	{"class << self; def fork; end; end; fork", "call fork"},
	{"def self.system(x); end\nsystem 'x'", "call system"},
	{":system.to_proc.call(Kernel, 'ls')", "use system; call system; use Kernel; computed name"},
	{"Kernel.instance_method(:system).bind(self).call('x')", "call instance_method; use system; call system"},
	{"Kernel.method(\"fo\" + \"rk\").unbind", "call method; use fork"},
	{"s = :system; send(s, 'x'); public_send(:exec, 'y')", "call send; call system; call public_send; call exec"},
	{"%w[system].each { |n| send(n, 'x') }", "call send; computed name"},
	{"self.class.const_get(:File).read('x')", "call class; call const_get; use File; call File.read"},
	{"Object.const_get(:Kernel).system('x')", "call const_get; use Kernel; call system"},
	{"Module.const_get(\"Fi#{'le'}\")", "call Module.const_get; use File"},
	{"a, b = Kernel, File; a.exec 'x'; b.delete 'y'", "use Kernel; use File; use Kernel; use File; call exec; call File.delete"},
	{"k = x || Kernel; k.fork; j = y ? File : IO; j.popen", "use Kernel; call x; use Kernel; call fork; use File; call y; use File; use IO; call File.popen"},
	{"x.instance_variable_get(:@a); ENV['HOME']; ENV.fetch('A'); $LOAD_PATH << 'x'", "call x; call instance_variable_get; use ENV; call ENV.fetch; use $LOAD_PATH"},
	{"Process.kill(9, 1); Process.fork { }; Signal.trap('INT'); ObjectSpace.garbage_collect", "call Process.kill; call Process.fork; call Signal.trap; call ObjectSpace.garbage_collect"},
	{"require'socket';require\"json\"", "import socket; call require; import json; call require"},
	{"require File.join(__dir__, 'x'); require_relative \"../a/#{b}\"", "call require; computed import; call File.join; call __dir__; call require_relative; computed import; call b"},
	{"require '/usr/lib/ruby/3.1.0/socket'; require 'net/http.rb'; require 'net//http'; require '/var/lib/gems/3.1.0/gems/httparty-0.21.0/lib/httparty.rb'", "import socket; call require; import net/http; call require; import net/http; call require; import httparty; call require"},
	{"begin; require 'x'; rescue LoadError => e; puts e; end", "import x; call require; use LoadError; call puts"},
	{"def require(x); end\nrequire 'socket'", ""},
	{"if false\n  def require(x); end\nend\nrequire 'socket'", "import socket; call require"},
	{"alias_method :sh, :system; sh 'ls'; undef system", "call alias_method; use system; call system"},
	{"%q(require 'a'); %Q[#{require 'b'}]; %(require 'c'); %w[#{x} require]; %W[#{exec 'd'}]; %i(exec); %r{exec #{fork}}i; %s(exec)", "import b; call require; call exec; call fork"},
	{"f(<<-A, <<~`B`)\n x #{system 'a'}\n A\n ls #{exec 'b'}\n B\nfork", "call f; call system; call `; call exec; call fork"},
	{"puts <<'A'.lines.map(&:strip)\nsystem('x')\nA\nexec 'y'", "call puts; call exec"},
	{"x = ?\"; system 'a' # \"", "call system"},
	{"x = ?'\nexec 'b' # '", "call exec"},
	{"$' ; system 'a'; $\" ; exec 'b'; $` ; fork", "use $'; call system; use $\"; call exec; use $`; call fork"},
	{"foo.class; foo.if; foo.def; { if: 1, end: 2, def: 3 }; system 'x'", "call foo; call foo; call foo; call system"},
	{"def class; end; def end; end; def if(x); end; system 'x'", "call system"},
	{"x.y /system('a')/", "call x"},
	{"x = y.size / 2; system 'a'; z = 3 / x", "call y; call system"},
	{"p(/system('a')/, %w[exec]); p %w[exec], :\"system\", :'exec', \"#{1}\": 2", "call p; call p"},
	{"\"a\" \"#{`ls`}\" 'b'", "call `"},
	{"\"é#{system('ü')}é\"", "call system"},
	{"foo&.eval('x'); df.eval 'y'; model.load 'z'; x.open; File.open('a'); URI.open('b')", "call foo; call df; call model; call x; call File.open; call URI.open"},
	{"eval(<<~A + \"fork\")\n  exec 'a'\nA", "call eval; call exec; call fork"},
	{"eval \"puts #{x}\"; eval DATA.read; instance_eval File.read('x')", "call eval; computed code; call x; call eval; computed code; call DATA.read; call instance_eval; computed code; call File.read"},
	{"binding.irb; binding.local_variable_set(:a, 1); TOPLEVEL_BINDING.eval('fork')", "call binding; call binding.irb; call binding; call binding.local_variable_set; call TOPLEVEL_BINDING.eval; call fork"},
	{"Thread.new { system 'a' }; loop do exec 'b' end; 3.times { |i| `#{i}` }", "call Thread.new; call system; call loop; call exec; call `"},
	{"system = 1; puts system; system + 1; system 'ls'; system('x')", "call puts; call system; call system"},
	{"def go(exec, fork: 1, &spawn); exec; fork; spawn.call; exec.(1); end; fork", "call fork"},
	{"->(eval) { eval }; lambda { |eval| eval }; eval 'x'", "call lambda; call eval; call x"},
	{"case x\nin {exec:} then exec\nin [fork, *] if fork\n  1\nend", "call x; call exec; call fork; call fork"},
	{"x = if y then system 'a' else exec 'b' end", "call y; call system; call exec"},
	{"while line = gets do system line end; until x; fork; end", "call gets; call system; call x; call fork"},
	{"autoload(:A, 'socket'); Object.autoload :B, \"open3\"; Kernel.load('x.rb', true)", "import socket; call autoload; call autoload; import open3; call load; import x"},
	{"Kernel.`('ls'); send(:`, 'ls')", "call `; call send; call `"},
	{"Net::HTTP::Get.new('x'); Net::HTTP.start; ::Net::HTTP::get 'x'; Foo::Kernel.system", "call Net::HTTP::Get.new; call Net::HTTP.start; call Net::HTTP.get; call Foo::Kernel.system"},
	{"Object.send(:remove_const, :X); Object.new.send(name); x.method(m).call", "call send; call remove_const; call new; call send; computed name; call name; call x; call method; call m; computed name"},
	{"require 'open-uri' if RUBY_VERSION > '2'; gem 'x'; Gem.install 'y'", "import open-uri; call require; use RUBY_VERSION; call gem; call Gem.install"},
	{"ERB.new('<%= x %>').result; YAML.load(x); Marshal.load(y); JSON.load z", "call ERB.new; call YAML.load; call x; call Marshal.load; call y; call JSON.load; call z"},
	{"puts(system: 1); foo system: 'x'; { 'exec' => 1 }", "call puts; call foo"},
	{"=begin", "problem"},
	{"Kernel.then { |k| k.system 'ls' }; [Kernel].first.system('x')", "call then; computed name; use Kernel; computed name"},
	{"%w[socket].each(&method(:require)); ['fork'].each(&method(:eval))", "call method; computed import; use require; call method; computed code; use eval"},
	{"def k = Kernel\nk.system 'x'", "use Kernel"},
	{"include Kernel; m = Kernel; m.fork", "call include; use Kernel; use Kernel; use Kernel; call fork"},
	{"a ?system('x'):0; x &.system; Kernel&.system 'x'", "call a; call system; call x; call system"},
	{"\"#{<<A}\"\n#{system 'x'}\nA\nfork", "call system; call fork"},
	{"foo(bar { fork }) { |a| exec a }; {a: system('z')}; ->{ fork }.call", "call foo; call bar; call fork; call exec; call system; call fork"},
	{"method(:method).call(:system).call('x')", "call method; use method; call method; use system; call system"},
}

func TestScan(t *testing.T) { lextest.Run(t, scanCode, scans) }

func TestScanHostile(t *testing.T) {
	lextest.Hostile(t, scanCode, "(", "{", "[", "\"#{", "a ", "<<A\n", "do ", "def f\n", "%w(", "eval ", "a.b ", "require ", "|", "a,", "::A", "x = y\n", "a /", "alias a b\n", "if ", "?a", "send(", "'a' ", "-> ", "end\n", "#{", "=begin\n", "case x\n", "a = b + ", "&m", "f(*")
}

// Each method's parameters are looked for in all that is in its brackets.
func TestScanTooComplex(t *testing.T) { lextest.TooComplex(t, scanCode, "a( def ", "def a( ") }

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scanCode, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scanCode, "require 'json'\ndef main(a, b = 2)\n  list = [1, 2, 3].map { |x| x * \"#{a}#{b}\".length } # sums\n  list.each do |name| puts name / 2 if name =~ /a[x]b/ end\n  File.read('x' + b).then { |t| JSON.parse(t)[:key] }\nend")
}

func TestLibraryName(t *testing.T) {
	for canonical, want := range map[string]string{"rake": "rake", "nokogiri:1.15.0": "nokogiri", "rack:~>3.0": "rack", "RedCloth": "redcloth"} {
		if got := libraryName(canonical); got != want {
			t.Errorf("%q: %q", canonical, got)
		}
	}
}
