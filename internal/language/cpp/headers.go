package cpp

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// headersDir is where a sandbox has precompiled headers.
const headersDir = "/tmp/" + headersBelow

// headersBelow is that below the directory for temporary files.
const headersBelow = ".cache/cpp-headers"

//go:embed headers.sh
var headersScript string

//go:embed compile.sh
var compileScript []byte

// flags are the compiler's options that a precompiled header depends on.
func (d *dialect) flags(std string) []string { return []string{"-std=" + std, "-O1", "-pthread"} }

// caches are the precompiled headers of g++ and the default standard. They depend on the headers of
// the compiler and of the C library, which is another package.
func (d *dialect) caches() []language.Cache {
	fill := append([]string{"sh", "-c", headersScript, "sh", headersDir}, d.precompiled...)
	fill = append(append(fill, "--", d.compilers[0]), d.flags(d.standard)...)
	return []language.Cache{{
		Name: "cpp-headers", Title: "C++'s headers", Target: headersDir, Program: d.compilers[0], Mounted: true,
		Installed: []string{"include/c++/*", "/usr/include/features.h", "/usr/include/bits", "/usr/include/*-linux-*/bits", "/usr/local/include"},
		Fill:      []language.Step{{Argv: fill}},
	}}
}

// header returns the path of the precompiled header for a program below the directory for temporary files, or "".
//
// It stands for the first includes of the program, and only for such: then it declares nothing
// that the program would not have. The standard lets a program include its headers in any order.
func (d *dialect) header(code []byte) string {
	included := leading(code)
	for i, list := range d.precompiled {
		if !slices.ContainsFunc(strings.Fields(list), func(name string) bool { return !slices.Contains(included, name) }) {
			return path.Join(headersBelow, strconv.Itoa(i)+".h")
		}
	}
	return ""
}

// standardHeaders are those that can be included before a precompiled one, because they mean the same behind it.
var standardHeaders = strings.Fields("bits/stdc++.h algorithm any array atomic bitset cassert cctype cerrno cfenv cfloat charconv chrono " +
	"cinttypes climits clocale cmath complex condition_variable csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cwchar " +
	"cwctype deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream " +
	"iterator limits list locale map memory memory_resource mutex new numeric optional ostream queue random ratio regex scoped_allocator set " +
	"shared_mutex sstream stack stdexcept streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map " +
	"unordered_set utility valarray variant vector assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stddef.h stdint.h stdio.h " +
	"stdlib.h string.h time.h")

var include = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^#[ \t]*include[ \t]*<([^>]*)>[ \t]*(//.*)?$`) })

// leading returns the standard headers that code includes before there is anything else but comments.
func leading(code []byte) []string {
	var names []string
	comment := false
	for line := range strings.Lines(string(code)) {
		line = strings.Trim(line, " \t\r\n")
		if strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "??/") { // goes on in the next line
			return names
		}
		if !comment && strings.HasPrefix(line, "/*") {
			comment, line = true, line[2:]
		}
		if comment {
			_, rest, ends := strings.Cut(line, "*/")
			if ends && rest != "" {
				return names
			}
			comment = !ends
			continue
		}
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		m := include().FindStringSubmatch(line)
		if m == nil || !slices.Contains(standardHeaders, m[1]) {
			return names
		}
		names = append(names, m[1])
	}
	return names
}
