package java

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

// in is a program with a body.
func in(body string) string { return "class A { void f() { " + body + " } }" }

var scans = []lextest.Case{
	{"import java.net.Socket;\nclass A { Socket s = new Socket(\"h\", 1); }", "import java.net.Socket; use java.net.Socket; call java.net.Socket"},
	{"import java.net.*;\nclass A { Socket s; }", "import java.net; import java.net.Socket; use java.net.Socket"},
	{"import java . net /* x */ . Socket ;", "import java.net.Socket"},
	{"import static java.lang.Runtime.getRuntime;\n" + in("getRuntime().exec(\"x\");"), "import java.lang.Runtime; call java.lang.Runtime.getRuntime; call java.lang.Runtime.exec"},
	{"import static java.lang.Runtime.*;\n" + in("getRuntime();"), "import java.lang.Runtime; call java.lang.Runtime.f; call java.lang.Runtime.getRuntime"},
	{"import java.util.Map.Entry; class A { Entry<A, A> e; }", "import java.util.Map.Entry; use java.util.Map.Entry"},
	{"import java.util.*; import java.io.*; class A { Scanner s; File f; }", "import java.util; import java.io; import java.util.Scanner; use java.util.Scanner; import java.io.File; use java.io.File"},
	{"import com.x.*; class A { Thing t; }", "import com.x; import com.x.Thing; use com.x.Thing"},
	{"import module java.base; class A { Socket s; }", "import java.base; import java.net.Socket; use java.net.Socket"},
	{in("new java.net.Socket(\"h\", 1);"), "import java.net.Socket; call java.net.Socket"},
	{in("java.lang.Runtime.getRuntime();"), "import java.lang.Runtime; call java.lang.Runtime.getRuntime"},
	{"class A extends java.lang.ClassLoader {}", "import java.lang.ClassLoader; use java.lang.ClassLoader"},
	{in("Runtime.getRuntime().exec(\"x\");"), "import java.lang.Runtime; call java.lang.Runtime.getRuntime; call java.lang.Runtime.exec"},
	{in("Runtime./* x */getRuntime()\n.exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("Runtime.<Object>getRuntime().<Object>exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("(Runtime.getRuntime()).exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("((Runtime) x).exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("Runtime r = Runtime.getRuntime(); r.exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("var r = Runtime.getRuntime(); r.exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("final java.lang.Runtime r = g(); r.exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("if (x instanceof Runtime r && r.exec(\"x\")) {}"), "+call java.lang.Runtime.exec"},
	{in("Object Runtime = 1; } void g() { Runtime.getRuntime();"), "+call java.lang.Runtime.getRuntime"},
	{in("Supplier<Runtime> s = Runtime::getRuntime;"), "+use java.lang.Runtime.getRuntime"},
	{in("Supplier<Runtime> s = Runtime::getRuntime; s.get().exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("List<Runtime> s = List.of(Runtime.getRuntime()); s.get(0).exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{"class A { class Runtime {} } class B { void f() { Runtime.getRuntime(); } }", "+call java.lang.Runtime.getRuntime"},
	{in("new ProcessBuilder(\"x\").inheritIO().start();"), "import java.lang.ProcessBuilder; call java.lang.ProcessBuilder; call java.lang.ProcessBuilder.inheritIO; call java.lang.ProcessBuilder.start"},
	{in("System.exit(1); System.getenv(\"X\");"), "import java.lang.System; call java.lang.System.exit; call java.lang.System.getenv"},
	{in("System.load(\"/x.so\"); System.loadLibrary(\"x\");"), "import java.lang.System; call java.lang.System.load; call java.lang.System.loadLibrary"},
	{"class A { native void f(); }", "use native"},
	{in("Class.forName(\"java.lang.Runtime\");"), "import java.lang.Class; call java.lang.Class.forName; import java.lang.Runtime"},
	{in("Class.forName(\"java.lang.\" + \"Run\" + \"time\");"), "+import java.lang.Runtime"},
	{in("Class.forName(\"\"\"\n  java.lang.Runtime\"\"\");"), "+import java.lang.Runtime"},
	{in("String n = \"java.lang.Runtime\"; Class.forName(n);"), "+computed import"},
	{"x.<)>f().getMethod(a", "computed name"},
	{in("Class.forName(\"java.lang.\" + n);"), "+computed import"},
	{in("Class.forName(\"java.lang.Runtime\".trim());"), "+computed import"},
	{in("Class.forName();x.getMethod(,1);"), "import java.lang.Class; call java.lang.Class.forName"},
	{in("java.util.Collections.<java.net.Socket>emptyList();"), "import java.util.Collections; call java.util.Collections.emptyList; import java.net.Socket"},
	{in("new java.net.@A @b.C(\"x\") Socket();"), "+call java.net.Socket"},
	{in("s.map(r -> r.exec(\"x\")); f(Runtime::getRuntime);"), "+call java.lang.Runtime.exec"},
	{in("A r; Runtime q = Runtime.getRuntime(); Object r = q; r.exec(\"x\");"), "+call java.lang.Runtime.exec"},
	{in("String n = \"java.lang.String\"; n = g(); Class.forName(n);"), "+computed import"},
	{in("String n = \"java.lang.String\"; } void g(String n) { Class.forName(n);"), "+computed import"},
	{in("Class.forName(n);"), "import java.lang.Class; call java.lang.Class.forName; computed import"},
	{in("\"\".getClass().forName(\"java.lang.Runtime\");"), "+import java.lang.Runtime"},
	{in("x.getClassLoader().loadClass(\"java.lang.Runtime\");"), "+import java.lang.Runtime"},
	{in("loader.loadClass(n);"), "computed import"},
	{in("Class.forName(\"java.lang.Runtime\").getMethod(\"exec\", String.class);"), "+use java.lang.Runtime.exec"},
	{in("Class<?> c = Class.forName(\"java.lang.Runtime\"); c.getMethod(\"exec\", x);"), "+use java.lang.Runtime.exec"},
	{in("Runtime.class.getMethod(\"ex\" + \"ec\", x);"), "+use java.lang.Runtime.exec"},
	{in("Runtime.class.getMethod(n);"), "+computed name"},
	{in("for (var m : Runtime.class.getMethods()) m.invoke(x);"), "+computed name"},
	{in("java.lang.invoke.MethodHandles.lookup().findStatic(Runtime.class, \"getRuntime\", t);"), "+use java.lang.Runtime.getRuntime"},
	{in("l.findVirtual(Runtime.class, n, t);"), "+computed name"},
	{"class A extends ClassLoader { void f(byte[] b) { defineClass(\"x\", b, 0, 1); } }", "+computed code"},
	{"import javax.script.*;\n" + in("new ScriptEngineManager().getEngineByName(\"js\").eval(x);"), "+computed code"},
	{"import java.lang.foreign.Linker;\n" + in("Linker.nativeLinker();"), "import java.lang.foreign.Linker; call java.lang.foreign.Linker.nativeLinker"},
	{"\\u0069mport java.net.Socket;", "import java.net.Socket"},
	{"import java.net.\\uuu0053ocket;", "import java.net.Socket"},
	{"/\\u002a x \\u002a/ import java.net.Socket;", "import java.net.Socket"},
	{"\\u002f\\u002a import java.net.Socket; */", ""},
	{"// \\u000a import java.net.Socket;", "import java.net.Socket"},
	{in("String s = \"\\u0022; Runtime.getRuntime(); //\\u0022;"), "+call java.lang.Runtime.getRuntime"},
	{in("String s = \"\\\\u0022; Runtime.getRuntime(); //\";"), "import java.lang.String; use java.lang.String"},
	{in("char c = '\"'; Runtime.getRuntime(); // \""), "+call java.lang.Runtime.getRuntime"},
	{in("String s = \"\"\"\n \\\"\"\" \" // \"\"\"; Runtime.getRuntime();"), "+call java.lang.Runtime.getRuntime"},
	{"// x\r import java.net.Socket;", "import java.net.Socket"},
	{in("int x = 0xe+Runtime.getRuntime().hashCode();"), "+call java.lang.Runtime.getRuntime"},
	{in("Run\u00adtime.getRun\\u0000time();"), "+call java.lang.Runtime.getRuntime"},
	{"Files.delete(Path.of(\"x\"));", "import java.nio.file.Files; call java.nio.file.Files.delete; import java.nio.file.Path; call java.nio.file.Path.of"},
	{"\ufeffimport java.net.Socket;\r\n", "import java.net.Socket"},
	{"class A { String s = \"a\n; }", "import java.lang.String; use java.lang.String; problem"},
	{"class A { /* }", "problem"},
	{"class A { String s = \"\"\"\n a", "import java.lang.String; use java.lang.String; problem"},
	// What only looks like it.
	{"// import java.net.Socket;\n/* Runtime.getRuntime() */\n/** {@link Runtime} */ class A {}", ""},
	{"class A { Object s = \"import java.net.Socket;\"; }", "import java.lang.Object; use java.lang.Object"},
	{"class A { Object s = \"\"\"\n import java.net.Socket;\n \"\"\"; }", "import java.lang.Object; use java.lang.Object"},
	{"class Runtime {} class A { Runtime r = Runtime.getRuntime(); }", ""},
	{"class Main { static class Process { void start() {} } void f() { new Process().start(); } }", ""},
	{in("x.getRuntime().exec(1); runtime.exec(2);"), ""},
	{"import java.network.Socket;", "import java.network.Socket"},
	{in("Charset.forName(\"UTF-8\"); x.get().forName(\"UTF-8\");"), ""},
	{"package java.net; class A {}", ""},
	{"class A { int config; void f() { config.MAX.x(); } }", ""},
	{in("model.eval(x);"), ""},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanEnds(t *testing.T) {
	lextest.Hostile(t, scan, "(", "[", "{", "<", ">", "a.", "a<", "\"", "'", "\"\"\"", "/*", "\\u", "\\u0022", "import ", "class A{", "A.b().", "(A)", "((", "String a=a+a;", "Class.forName(", "var x=", "a.<b>", "new ", "::a", ".<a", ".<a>", ".@a(", ".@a.", "x.exec(", "Runtime a;a.exec();", "Class.forName(\"a\").getMethod(\"b\");", "((A)", "import a.b;", "a[]", "a>")
	lextest.Hostile(t, scan, "String a=\"x\";String b=a+a;String c=b+b;String d=c+c;Class.forName(d);\n", "import a.*;\nB.c();", "import static a.B.*;\nc();")
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, "import java.util.*;\nclass A {\n  int f(List<Integer> v) {\n    int sum = 0; // words\n    for (int x : v) sum += x * 2;\n    System.out.println(\"sum \" + sum);\n    return sum;\n  }\n}")
}

func TestLibraryName(t *testing.T) {
	for in, want := range map[string]string{"a.b:c:1.0": "a.b:c", "a.b:c": "a.b:c", "a.b:c:jar:x:1.0": "a.b:c"} {
		if got := libraryName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
