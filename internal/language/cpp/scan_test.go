package cpp

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

// Of C, both readings of what standards differ on are found.
var scansOfC = []lextest.Case{
	{"#include <stdlib.h>\nint main(void) { return system(\"ls\"); }", "import stdlib.h; call system"},
	{"#define R\nchar *a = R\"(\"; int x = system(\"ls\"); char *b = R\")\";", "+call system"},
	{"#define F(x)\nF(0'a\"') int x = system(\"ls\"); F(0'a\"')", "+call system"},
	{"char *a = R\"(\\\")\"; int x = system(\"ls\");", "+call system"},
	{"int x = '\\'' + 1'000; /* system(1) */", ""},
	{"??=define X 1'0\nint main(void) { popen(\"ls\", \"r\"); }", "call popen"},
}

var scans = []lextest.Case{
	{"#include <unistd.h>\n", "import unistd.h"},
	{"# include <unistd.h>", "import unistd.h"},
	{"%:include <unistd.h>", "import unistd.h"},
	{"%: /* x */ include/**/<unistd.h> // y", "import unistd.h"},
	{"/* a\n*/ #include <unistd.h>", "import unistd.h"},
	{"??=include <unistd.h>", "import unistd.h"},
	{"#inc\\\nlude <unis\\\r\ntd.h>", "import unistd.h"},
	{"#include \\  \n <unistd.h>", "import unistd.h"},
	{"#include \"sys/socket.h\"", "import sys/socket.h"},
	{"#include_next <unistd.h>", "import unistd.h"},
	{"#import <unistd.h>", "import unistd.h"},
	{"#include </usr/include/x86_64-linux-gnu/sys/socket.h>", "import sys/socket.h"},
	{"#include <./sys/../unistd.h>\n#include <../include/unistd.h>", "import unistd.h; import unistd.h"},
	{"#define H <unistd.h>\n#include H", "computed import"},
	{"#define H \"unistd.h\"\n#include H", "computed import"},
	{"#define H(x) <x.h>\n#include H(unistd)", "computed import"},
	{"#define E\nE\nimport <unistd.h>;", "import unistd.h"},
	{"#include H", "computed import"},
	{"#embed \"/etc/passwd\"", "use #embed"},
	{"import <unistd.h>;\nexport import std.core;", "import unistd.h; import std.core"},
	{"int main() { system(\"ls\"); }", "call system"},
	{"int main() { return ::system(\"ls\"); }", "call system"},
	{"int main() { std::system(\"ls\"); }", "call system"},
	{"int main() { ::std::system(\"ls\"); }", "call system"},
	{"int main() { std :: /* x */ system (\"ls\"); }", "call system"},
	{"using namespace std;\nint main() { system(\"ls\"); }", "call system"},
	{"using std::system;\nint main() { system(\"ls\"); }", "use system; call system"},
	{"int main() { auto f = &system; f(\"ls\"); }", "use system; call system"},
	{"int main() { auto f = std::system; f(\"ls\"); }", "use system; call system"},
	{"int (*f)(const char *) = system; int x = f(\"ls\");", "use system; call system; call f"},
	{"int main() { (system)(\"ls\"); (*&system)(\"ls\"); }", "use system; use system"},
	{"int main() { auto f = unlink; f(\"x\"); run(&remove, \"x\"); }", "use unlink; call unlink; call run; use remove"},
	{"std::function<int(const char*)> f{system};", "use std::function; use system"},
	{"extern \"C\" int system(const char*);", "use system"},
	{"extern \"C\" int run(const char*) asm(\"system\");", "call asm; use system"},
	{"extern \"C\" int run(const char*) __attribute__((alias(\"system\")));", "+use system"},
	{"int x = true ? system(\"a\"), T{1} : T{2};", "+call system"},
	{"int x = y ? remove(\"a\") : T{2};", "call remove"},
	{"int x = remove(\"a\") < T{2};", "call remove"},
	{"int f() { remove(\"x\"), T{}; }", "call remove"},
	{"namespace fs = std::filesystem;\nvoid f() { fs::remove_all(\"x\"); }", "use std::filesystem; call std::filesystem::remove_all"},
	{"namespace s = std; void f() { s::system(\"x\"); }", "call system"},
	{"using namespace std::filesystem;\nvoid f() { remove_all(\"x\"); }", "use std::filesystem; call std::filesystem::remove_all"},
	{"using namespace std;\nvoid f() { filesystem::remove_all(\"x\"); }", "call std::filesystem::remove_all"},
	{"using F = std::ofstream; F f(\"x\");", "use std::ofstream; use std::ofstream"},
	{"typedef std::ofstream F; F f(\"x\");", "use std::ofstream; use std::ofstream"},
	{"using namespace std; ofstream f(\"x\");", "use std::ofstream"},
	{"#define S system\nint main() { S(\"ls\"); }", "use system; call system; call S"},
	{"#define S std::system\nint main() { S(\"ls\"); }", "use system; call system; call S"},
	{"#define N std\nint main() { N::system(\"ls\"); }", "+call system"},
	{"#define C ::\nint main() { std C system(\"ls\"); }", "+call system"},
	{"#define A B\n#define B system\nint main() { A(\"ls\"); }", "+call system"},
	{"#define S sys##tem\nint main() { S(\"ls\"); }", "+call system"},
	{"#define P(a, b) a##b\nint main() { P(sys, tem)(\"ls\"); }", "+call system"},
	{"#define P(a, b) a%:%:b\n#define Q(a, b) P(a, b)\nint main() { Q(Q(s, ys), tem)(\"ls\"); }", "+computed name"},
	{"#define CALL(f, x) f(x)\nint main() { CALL(system, \"ls\"); }", "+use system"},
	{"#define CALL(...) __VA_ARGS__\nint main() { CALL(system)(\"ls\"); }", "+use system"},
	{"#define CALL(f, x) f(x)\nint main() { CALL(mkdir, \"x\"); }", "+use mkdir"},
	{"#define E\nint main() { E remove(\"x\"); E ::system(\"x\"); remove E (\"x\"); std::E system(\"x\"); }",
		"call remove; call system; call remove; call system"},
	{"#define R return\nint f() { R remove(\"x\"); }", "call remove"},
	{"#define S mkdir\nint f() { S(\"x\"); }", "use mkdir; call mkdir; call S"},
	{"#define N std\nnamespace M = N; void f() { M::system(\"x\"); }", "+call system"},
	{"using A = B; using B = std::ofstream; A f(\"x\");", "+use std::ofstream"},
	{"using a::b, std::system; void f() { system(\"x\"); }", "use a::b; use system; call system"},
	{"struct { int remove(int); } x; void f() { remove(\"x\"); }", "call remove"},
	{"namespace z { int unlink(int) { return 1; } } void f() { unlink(\"x\"); }", "call unlink"},
	{"struct S { int v = c ? a : y * remove(\"x\"), w = remove(\"x\"); };", "call remove; call remove"},
	{"#if '0'\nint x = system(\"x\");\n#endif", "call system"},
	{"#define RUN(x) system(x)", "call system"},
	{"#define P(a, b) a##b\n#ifdef X\n#undef P\n#endif\nint main() { P(sys, tem)(\"ls\"); }", "+computed name"},
	{"#define P(a, b) a##b\n#ifdef X\n#define P(a, b) puts\n#endif\nint main() { P(sys, tem)(\"ls\"); }", "+computed name"},
	{"#ifdef X\n#define system puts\n#endif\nint main() { system(\"ls\"); }", "+call system"},
	{"#ifdef X\nstruct S { void system();\n#endif\nint f() { return system(\"ls\"); }\n#ifdef X\n};\n#endif", "+call system"},
	{"#define system foo\n#undef system\nint main() { system(\"ls\"); }", "+call system"},
	{"#if 0\n#else\nint x = system(\"ls\");\n#endif", "call system"},
	{"#if 0\n// \\\n#endif\n#endif\nint x = system(\"ls\");", "call system"},
	{"#if 0\n\"/*\"\n#endif\nint x = system(\"ls\"); /* */", "call system"},
	{"#if 0\n\"\\\"/*\"\n#endif\nint x = system(\"ls\"); /* */", "call system"},
	{"#if 0\n\"\\\\\"/*\n#endif\n*/\n#endif\nint x = system(\"ls\");", "call system"},
	{"#if 0\nR\"(\n#endif\nint x = system(\"x\");\n#if 0\n)\"\n#endif", "call system"},
	{"#if 0\n#if 1\n#else\n#endif\nint y = system(\"y\");\n#elif /* x */ 1 // y\nint x = system(\"x\");\n#endif", "call system"},
	{"#if 0\n\"\\", "problem"},
	{"system(\\\n1);\n#if 0\n'\\", "call system; problem"},
	{"#pragma weak run = system", "use system"},
	{"int main() { asm volatile(\"syscall\"); __asm__(\"nop\"); syscall(59, 0); }", "call asm; use syscall; call asm; use nop; call syscall"},
	{"int main() { fork(); execl(\"a\", 0); popen(\"x\", \"r\"); posix_spawn(0); }", "call fork; call execl; call popen; call posix_spawn"},
	{"void* h = dlopen(\"libc.so.6\", 1); void* f = dlsym(h, \"sys\" \"tem\");", "call dlopen; import libc.so.6; call dlsym; use system"},
	{"void* f = dlsym(h, \"\\x0073ys\\164em\");", "call dlsym; use system"},
	{"void* f(char* n) { return dlsym(RTLD_DEFAULT, n); }", "call dlsym; computed name"},
	{"void* h = dlopen(n, 1);", "call dlopen; computed import"},
	{"auto s = R\"x(\")\")x\"; int y = system(\"ls\");", "call system"},
	{"auto s = R\"(a\\\nb)\"; int y = sys\\\ntem(\"ls\");", "call system"},
	{"auto s = u8R\"(\")\"; int y = system(\"ls\");", "call system"},
	{"// x ??/\nint y = system(\"ls\");", "call system"},
	{"// x \\\nint y = system(\"ls\");\nint z;", ""},
	{"char c = '\"'; int y = system(\"ls\"); // \"", "call system"},
	{"int n = 1'000'000; int y = system(\"ls\"); char c = 'x';", "call system"},
	{"\\u0073ystem(\"ls\");", "call system"},
	{"int remove(int) { return 1; } int f() { return std::remove(\"x\"); }", "call remove"},
	{"void system(int) {} int f() { return system(\"x\"); }", "call system"},
	{"struct S { void system(); }; int f() { return system(\"x\"); }", "call system"},
	{"struct S { int system; }; auto f = &system;", "use system"},
	{"struct A {} a; void f() { a * system; system(\"x\"); }", "call system"},
	{"\ufeff#include <a>\r\n", "import a"},
	{"auto s = \"a\nint x;", "problem"},
	{"auto s = R\"(a", "problem"},
	{"/* a", "problem"},
	// What only looks like it.
	{"// #include <unistd.h>\n/* system(\"ls\") */", ""},
	{"auto s = \"#include <unistd.h>\\n system(1)\";", ""},
	{"auto s = R\"(\n#include <unistd.h>\n)\";", ""},
	{"#if 0\n#include <unistd.h>\ndon't\n#endif", ""},
	{"#if __has_include(<unistd.h>)\n#endif\n#error don't", ""},
	{"#include <unistd.hpp>", "import unistd.hpp"},
	{"void f() { x.system(\"ls\"); p->remove(1); X::system(2); }", "call X::system"},
	{"class List { void remove(int); void f() { remove(1); } };", ""},
	{"class List { void remove(int); };\nvoid List::f() { remove(1); }", ""},
	{"struct S { int system(int x) { return x; } int f() { return system(1); } };", ""},
	{"void f(System& system) { system.run(); }", ""},
	{"int remove(int x) { return x; } int f() { return remove(2); }", ""},
	{"using namespace std; auto e = remove(v.begin(), v.end(), 1);", "call std::remove"},
	{"void f() { std::vector<int> v; v.push_back(1); }", "use std::vector"},
	{"void f() { auto run = [](int x) { return x; }; run(1); }", ""},
	{"void f(int open, char* kill) { int socket = 1; g(socket, open, kill); }", "call g"},
	{"int system_time = 1; int my_system(int);", ""},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanC(t *testing.T) { lextest.Run(t, scanC, scansOfC) }

func TestScanEnds(t *testing.T) {
	lextest.Hostile(t, scan, "(", "[", "{", "\"", "R\"(", "/*", "#define A(x) A(x) A(x)\n", "#if 0\n", "a::", "f(", "struct ", "system(", "??/\n", "\\\n", "using A=", "%:", "dlsym(a,", "auto f=&system;", "import <",
		"::using", "using ", "a::b=", "class ", "#define a b\n", "\\u0061", "a*", "extern system", "::a", "#include <", "#define a b::b\n#define b a::a\na(b())\n")
	lextest.Hostile(t, scan, "#define A(x) x x\n", "#define A(x) x x\nA(A(A(A(A(A(A(A(A(A(A(A(1))))))))))))\n", "#define M(x) x\nM(", "#define a b b\n#define b c c\n#define c a a\na b c\n")
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func FuzzScanC(f *testing.F) { lextest.Fuzz(f, scanC, scansOfC) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, "#include <vector>\nint f(const std::vector<int>& v) {\n  int sum = 0; // words\n  for (auto x : v) sum += x * 2;\n  std::cout << \"sum \" << sum << std::endl;\n  return sum;\n}")
}

func TestLibraryName(t *testing.T) {
	for in, want := range map[string]string{"libfmt-dev=9.1.0": "libfmt-dev", "libfmt-dev": "libfmt-dev"} {
		if got := Language.LibraryName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
