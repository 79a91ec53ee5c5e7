package java

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for code, want := range map[string][2]string{
		`class A {} public class B { public static void main(String[] a) {} }`:                                       {"B", "B"},
		`class A { static void main(String... a) {} } class B {}`:                                                    {"A", "Main"},
		`package x.y; import a.b; public class C {} class D { public static void main(String[] a){} }`:               {"x.y.D", "C"},
		`// class X {}` + "\n" + `/* class Y */ @Ann(Z.class) class W { String s = "class Q { static void main("; }`: {"W", "Main"},
		`class A { String t = """` + "\n" + `class "B" { """; static void main(String[] x) {} }`:                     {"A", "Main"},
		`public record R(int x) { public static void main(String[] a) {} }`:                                          {"R", "R"},
		`enum E { A; public static void main(String[] a) {} }`:                                                       {"E", "Main"},
		`interface I { static void main(String[] a) {} }`:                                                            {"I", "Main"},
		`class A { class In { static void main(String[] a) {} } } class B { static void main(String[] a) {} }`:       {"B", "Main"},
		``: {"Main", "Main"},
	} {
		u, err := parse([]byte(code))
		if err != nil {
			t.Errorf("%s\ngot %v, want none", code, err)
		}
		if got := [2]string{u.mainClass(), u.fileName()}; got != want {
			t.Errorf("%s\ngot %v, want %v", code, got, want)
		}
	}
}

func TestParseBoundsThePackage(t *testing.T) {
	u, err := parse([]byte("package " + strings.Repeat("a.", 1_000_000) + "; class A {}"))
	if err != nil || len(u.pkg) > maxPackage || u.mainClass() != u.pkg+".A" {
		t.Errorf("a package of %d bytes, want at most %d; main class %.20q..., %v", len(u.pkg), maxPackage, u.mainClass(), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`package a.b; public class A { static void main(String[] a) {} }`))
	f.Add([]byte(`"""` + "\\"))
	f.Fuzz(func(t *testing.T, code []byte) {
		u, err := parse(code)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range u.fileName() {
			if c == '/' || c == 0 {
				t.Fatalf("file name has byte %q, want no slash and no NUL", c)
			}
		}
	})
}
