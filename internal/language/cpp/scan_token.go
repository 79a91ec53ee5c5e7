package cpp

import (
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "//", Block: true, Ends: "\n", Names: "$", Universal: true, Digits: "'", Quotes: `"'`,
	Escapes:   &lex.Escapes{Letters: "ntr", Values: "\n\t\r", Bytes: true, Any: true, Long: true},
	Operators: lex.OperatorsOf("->* -> :: ## == != <= >= += -= *= && ||"),
}

// plainTable is the table of C without raw strings and separators of digits.
var plainTable = func() lex.Table {
	t := table
	t.Digits = ""
	return t
}()

// A lexer splits code whose lines are joined. The lines of the preprocessor are among the tokens:
// each begins with "#" behind a Newline and goes up to the next one.
type lexer struct {
	lex.Lexer
	original string
	edited   *lex.Edited // nil when it is the original
	line     int         // the first token of this line
	begin    int         // where the line begins
	// Lines behind #if 0 are as good as a comment. This many of such parts are open, the
	// first of which begins at dead, and what is in them is no fact.
	open, dead int
	living     *lex.Facts
}

func (l *lexer) run() {
	l.Special, l.Newline, l.Prefixed = l.special, l.newline, l.prefixed
	l.Unreadable = func(reason string) {
		if reason != lex.NotClosed || !l.directive() { // where quotes may be left open
			l.MarkUnreadable(reason)
		}
	}
	l.Run()
	l.newline(len(l.Code))
	if l.open > 0 {
		l.Facts = l.living
		l.Comment(l.dead, len(l.Code))
		l.MarkUnreadable("an #if is not closed")
	}
}

// newline ends a line's tokens.
func (l *lexer) newline(at int) {
	last := l.Last()
	switch {
	case l.open > 0:
		l.deadLine()
	case len(l.Tokens) == l.line+3 && l.directive("if") && last.Kind == lex.Number && last.Text == "0":
		l.living, l.Facts = l.Facts, &lex.Facts{Meter: l.Meter}
		l.open, l.dead = 1, at
	}
	if l.begin = l.Pos; len(l.Tokens) > l.line {
		l.Put(lex.Newline, l.Pos, "")
		l.line = len(l.Tokens)
	}
}

// deadLine leaves out a line behind #if 0, unless it ends the part.
func (l *lexer) deadLine() {
	switch {
	case l.directive("if", "ifdef", "ifndef"):
		l.open++
	case l.directive("endif"), l.open == 1 && l.directive("else", "elif", "elifdef", "elifndef"):
		l.open--
	}
	if l.open > 0 {
		l.Tokens = l.Tokens[:l.line]
		return
	}
	dead := l.Facts
	l.Facts = l.living
	l.Comment(l.dead, l.begin)
	for _, c := range dead.Comments {
		if c.Start >= l.begin { // it is in this line
			l.Comment(c.Start, c.End)
		}
	}
}

// directive tells whether this line is for the preprocessor, and if any names are given, has one of them.
func (l *lexer) directive(names ...string) bool {
	line := l.Tokens[l.line:]
	if len(line) == 0 || !line[0].Is("#") {
		return false
	}
	return len(names) == 0 || len(line) > 1 && line[1].Kind == lex.Name && slices.Contains(names, line[1].Text)
}

// digraphs are operators that have two spellings, the longer ones first.
var digraphs = [...][2]string{{"%:%:", "##"}, {"%:", "#"}, {"<%", "{"}, {"%>", "}"}, {"<:", "["}, {":>", "]"}}

func (l *lexer) special(c byte) bool {
	start := l.Pos
	if (c == '<' || c == '"') && len(l.Tokens) == l.line+2 && l.directive("include", "include_next", "import", "embed") {
		return l.header(c)
	}
	// "<::" is "<" and "::", unless another ":" or a ">" follows.
	if c != '<' && c != '%' && c != ':' || l.Has("<::") && l.At(3) != ':' && l.At(3) != '>' {
		return false
	}
	for _, d := range digraphs {
		if l.Skip(d[0]) {
			l.Put(lex.Punct, start, d[1])
			return true
		}
	}
	return false
}

// header reads <name> or "name", in which nothing is escaped.
func (l *lexer) header(c byte) bool {
	start := l.Pos
	line, _, _ := strings.Cut(l.Code[start+1:], "\n")
	name, _, ok := strings.Cut(line, string(lex.Opposite(c)))
	if ok {
		l.Pos += len(name) + 2
		l.Put(lex.String, start, name).Constant = true
	}
	return ok
}

// prefixed reads a string with a prefix. Behind #if 0, compilers do not agree on whether there are raw
// ones, and what one of them takes for code counts.
func (l *lexer) prefixed(start int) bool {
	switch quote := l.Code[l.Pos : l.Pos+1]; l.Code[start:l.Pos] {
	case "R", "LR", "uR", "UR", "u8R":
		return quote == `"` && l.open == 0 && l.Table != &plainTable && l.raw(start)
	case "L", "u", "U", "u8":
		l.Pos++
		l.Literal(start, lex.Quote{End: quote, Escapes: table.Escapes})
		return true
	}
	return false
}

// raw reads R"x(...)x" from its quote on, in which no lines are joined. It does nothing where it is
// none.
func (l *lexer) raw(start int) bool {
	at := l.Pos
	if l.edited != nil {
		at = l.edited.Origin(language.Span{Start: at, End: at}).Start
	}
	name, _, ok := strings.Cut(l.original[at+1:min(at+18, len(l.original))], "(")
	if !ok || strings.ContainsAny(name, "\"\n") {
		return false
	}
	at += len(name) + 2
	text, rest, closed := strings.Cut(l.original[at:], ")"+name+`"`)
	if !closed {
		l.MarkUnreadable("a raw string is not closed")
	}
	if l.Pos = len(l.original) - len(rest); l.edited != nil {
		l.Pos = l.edited.Place(l.Pos)
	}
	t := l.Put(lex.String, start, text)
	t.Constant = closed
	l.String(language.Literal{Span: t.Span, Value: text})
	return true
}

// functions are those that count without being called, since their address is as good as a call: true
// of those that start programs, load code or leave the language, wherever they are named; false of those
// whose names are words that others use, too, where they may be all of a value.
var functions = sync.OnceValue(func() map[string]bool {
	all := lex.Words(`system popen execl execlp execle execv execvp execvpe execve execveat fexecve
		fork vfork clone clone3 posix_spawn posix_spawnp wordexp syscall ptrace mprotect memfd_create
		dlopen dlmopen dlsym dlvsym _popen _wpopen _wsystem _execv _execve _execvp _spawnl _spawnv _spawnvp
		WinExec ShellExecuteA ShellExecuteW ShellExecuteExA ShellExecuteExW CreateProcessA CreateProcessW
		LoadLibrary LoadLibraryA LoadLibraryW GetProcAddress setuid setgid chroot mount unshare setns
		__libc_system __fork __libc_fork __vfork _IO_popen`)()
	for name := range lex.Words(`unlink unlinkat rmdir remove rename truncate kill killpg open openat creat fopen freopen
		socket connect sendto getenv secure_getenv setenv putenv chmod chown symlink mmap reboot`)() {
		all[name] = false
	}
	return all
})

// inC is what std has of C's library.
var inC = lex.Words(`system getenv remove rename tmpfile tmpnam fopen freopen fclose fread fwrite fputs fgets
	exit _Exit abort quick_exit atexit at_quick_exit signal raise longjmp setlocale
	malloc calloc realloc free aligned_alloc memcpy memmove memset strcpy strcat strncpy strlen strcmp
	printf fprintf sprintf snprintf vprintf scanf fscanf sscanf gets puts putchar getchar perror
	rand srand atoi atof strtol strtod qsort bsearch time clock`)

// inStd is what else std has that a policy may name.
var inStd = lex.Words(`ofstream ifstream fstream filebuf basic_ofstream basic_ifstream basic_fstream
	thread jthread async future promise packaged_task terminate cin cout cerr bind function random_device`)

// inFilesystem are the functions and iterators of std::filesystem.
var inFilesystem = lex.Words(`remove remove_all rename copy copy_file copy_symlink create_directory create_directories create_symlink
	create_hard_link create_directory_symlink permissions resize_file current_path last_write_time exists file_size
	is_directory is_regular_file read_symlink space status temp_directory_path absolute canonical
	directory_iterator recursive_directory_iterator path`)

// expression are words that an expression follows, and no name that is declared.
var expression = lex.Words(`return else do throw case goto new delete co_return co_await co_yield not and or xor compl bitand bitor
	and_eq or_eq xor_eq not_eq sizeof if while for switch __extension__ noexcept explicit inline typeof decltype alignof`)

// keywords are words that are no names of functions.
var keywords = lex.Words(`if else for while do switch case return break continue goto default try catch throw
	class struct union enum namespace using typedef template typename operator new delete this
	sizeof alignof alignas decltype typeof noexcept static_assert requires concept constexpr consteval constinit
	int char bool void long short unsigned signed float double auto const volatile static extern inline
	virtual explicit friend mutable public private protected register thread_local true false nullptr
	static_cast dynamic_cast const_cast reinterpret_cast typeid co_return co_await co_yield and or not xor
	and_eq or_eq xor_eq not_eq compl bitand bitor
	__attribute__ __declspec defined wchar_t char8_t char16_t char32_t export asm __asm__ __asm import`)
