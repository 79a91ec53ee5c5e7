package llmsandbox

import "testing"

func TestProgramsLearnWhatIsMissing(t *testing.T) {
	var p programs
	if got := p.choose("python3", "python"); got != "python3" {
		t.Fatalf("chose %q first, want \"python3\"", got)
	}
	if !p.reject("python3") {
		t.Fatal("there is another one to try: p.reject(\"python3\") = false, want true")
	}
	if got := p.choose("python3", "python"); got != "python" {
		t.Fatalf("chose %q next, want \"python\"", got)
	}
	if p.reject("python") {
		t.Fatal("there is none left to try: p.reject(\"python\") = true, want false")
	}
	if got := p.choose("python3", "python"); got != "python3" {
		t.Errorf("chose %q when all are missing: the error should name the usual one, want \"python3\"", got)
	}
	if p.reject("never chosen") {
		t.Error("what was never chosen has no alternatives: p.reject(\"never chosen\") = true, want false")
	}
	if got := p.choose(); got != "" {
		t.Errorf("chose %q of nothing, want empty", got)
	}
}
