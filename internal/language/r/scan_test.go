package r

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	{"library(httr)", "call library; import httr"},
	{"x <- 1\nlibrary(httr)", "call library; import httr"},
	{"x <- 1; library( 'httr' )", "call library; import httr"},
	{"suppressMessages(library(httr))", "call suppressMessages; call library; import httr"},
	{"if (require(\"httr\")) 1", "call require; import httr"},
	{"httr::GET('x')", "import httr; call httr::GET"},
	{"httr:::GET('x')", "import httr; call httr::GET"},
	{"'httr'::\"GET\"('x')", "import httr; call httr::GET"},
	{"`httr`::GET", "import httr; use httr::GET"},
	{"base::system('ls')", "call system"},
	{"utils::download.file(u, f)", "import utils; call download.file; use u; use f"},
	{"base::library(httr)", "call library; import httr"},
	{"requireNamespace('httr', quietly = TRUE)", "call requireNamespace; import httr"},
	{"loadNamespace(\"httr\")", "call loadNamespace; import httr"},
	{"attachNamespace(paste0('ht', \"tr\"))", "call attachNamespace; call paste0; computed import"},
	{"library(x, character.only = TRUE)", "call library; use x; computed import"},
	{"p <- 'httr'; library(p, character.only = TRUE)", "call library; computed import"},
	{"p <- 'httr'; library(p, char = TRUE)", "+computed import"},
	{"p <- 'httr'; library(pack = p, char = T)", "+computed import"},
	{"'httr' -> p; library(p, character.only = TRUE)", "+computed import"},
	{"p <- 'stats'; p <- f(); library(p, character.only = TRUE)", "+computed import"},
	{"p <- 'stats'; for (p in 'httr') library(p, character.only = TRUE)", "+computed import"},
	{"p <- 'stats'; (function(p) library(p, character.only = TRUE))('httr')", "+computed import"},
	{"lapply(c('httr', 'x'), library, character.only = TRUE)", "call lapply; import httr; import x; call c; use library"},
	{"pkgs <- c('httr', 'x'); for (p in pkgs) library(p, character.only = TRUE)", "+computed import"},
	{"pkgs <- c('httr', 'x'); invisible(sapply(pkgs, require, character.only = TRUE))", "+computed import"},
	{"sapply(f(), require, character.only = TRUE)", "+computed import"},
	{"do.call(library, list('httr'))", "+import httr"},
	{"do.call('library', list('httr'))", "+import httr"},
	{"l <- library; l(httr)", "use library; call l; call library; import httr"},
	{"(if (TRUE) library else 1)(httr)", "+computed import"},
	{"(library)(httr)", "+computed import"},
	{"'httr' |> library(character.only = TRUE)", "+import httr"},
	{"pacman::p_load(httr, 'x')", "+import httr"},
	{"system('ls')", "call system"},
	{"`system`('ls')", "call system"},
	{"'system'('ls')", "call system"},
	{"\"\\x73ystem\"('ls')", "call system"},
	{"`\\u0073ystem`('ls')", "call system"},
	{"r\"(system)\"('ls')", "call system"},
	{"R'--[system]--'('ls')", "call system"},
	{"(system)('ls')", "use system"},
	{"f <- system; f('ls')", "use system; call f; call system"},
	{"system -> f; f('ls')", "use system; call f; call system"},
	{"f = base::system; f('ls')", "use system; call f; call system"},
	{"g <- f <- system; g('ls')", "+call system"},
	{"f <- g; g <- system; f('ls')", "+call system"},
	{"'f' <- system; f('ls')", "+call system"},
	{"assign('f', system)", "+use system"},
	{"do.call('system', list('ls'))", "call do.call; call system; call list"},
	{"do.call(system, list('ls'))", "call do.call; use system; call list"},
	{"do.call(what = 'system', args = list('ls'))", "+call system"},
	{"do.call(args = list('ls'), 'system')", "+call system"},
	{"do.call(paste0('sys', 'tem'), list('ls'))", "+computed name"},
	{"f <- tolower('SYSTEM'); do.call(f, list('ls'))", "+computed name"},
	{"get('system')('ls')", "call get; call system"},
	{"get(paste0(a, 'tem'))('ls')", "+computed name"},
	{"match.fun('system')('ls')", "+call system"},
	{"sapply('ls', 'system')", "+call system"},
	{"sapply('ls', system)", "+use system"},
	{"Map('system', 'ls')", "+call system"},
	{"Reduce(f = 'system', 'ls')", "+call system"},
	{"getExportedValue('httr', 'GET')", "call getExportedValue; import httr; call httr::GET"},
	{"getFromNamespace('GET', 'httr')", "call getFromNamespace; call httr::GET; import httr"},
	{"asNamespace('httr')$GET('x')", "call asNamespace; import httr; call httr::GET"},
	{"baseenv()$system('ls')", "call baseenv; call system"},
	{"baseenv()[['system']]('ls')", "call baseenv; call system"},
	{"e <- baseenv(); e$system('ls')", "+call system"},
	{"e <- baseenv(); e[[x]]('ls')", "+computed name"},
	{".GlobalEnv$system", "+use system"},
	{"eval(parse(text = \"system('ls')\"))", "call eval; call parse; call system"},
	{"eval(parse(text = paste0('sys', \"tem('ls')\")))", "+computed code"},
	{"x <- \"library(httr)\"; eval(parse(text = x))", "+computed code"},
	{"eval(parse(text = x))", "call eval; call parse; use x; computed code"},
	{"eval(parse(t = 'system(1)'))", "+call system"},
	{"eval(str2lang('system(1)'))", "+call system"},
	{"eval(parse('file.R'))", "+computed code"},
	{"eval(call('system', 'ls'))", "call eval; call call; call system"},
	{"eval(as.call(list(as.name('system'), 'ls')))", "+call system"},
	{"eval(quote(system('ls')))", "+call system"},
	{"source('http://x')", "+computed code"},
	{"source('x.R')", "call source"},
	{"system\n('ls')", "use system"},
	{"(system\n('ls'))", "use system"},
	{"system ('ls')", "call system"},
	{"x |> system()", "use x; call system"},
	{"(\\(f) f('ls'))(system)", "call f; use system"},
	{"function(system) system('ls')", "call system"},
	{"system <- 5; system('ls')", "call system"},
	{"g <- function() { system <- function(x) 1 }; system('ls')", "call system"},
	{"system <- function(x) 1; rm(system); system('ls')", "call rm; use system; call system"},
	{"x <- '#'; system('ls')", "call system"},
	{"x <- \"'\"; system('ls') # '", "call system"},
	{"Sys.getenv('HOME'); file.remove('x'); unlink('x'); .Call('f'); dyn.load('x.so')",
		"call Sys.getenv; call file.remove; call unlink; call .Call; call dyn.load"},
	{"a %o% b; system('ls')", "use a; use b; call system"},
	{"\ufefflibrary(httr)\r\nx", "call library; import httr; use x"},
	{"x <- 0x1Lsystem", ""},
	{"x <- 'a", "problem"},
	{"x <- r\"(a)", "problem"},
	{"x <- `a", "use a; problem"},
	{"a %b\nsystem(1)", "use a; call system; problem"},
	// Arguments are matched as R does.
	{"parse('', NULL, \"system('ls')\")", "+call system"},
	{"parse(text = c('system(1)', 'library(httr)'))", "+import httr"},
	{"sapply(X = 'ls', 'system')", "+call system"},
	{"sapply('ls', FUN = 'system')", "+call system"},
	{"sweep(x, 1, y, 'system')", "+call system"},
	{"library(help = x, httr)", "+import httr"},
	{"library(p, character.only = F)", "+computed import"},
	{"'system' %>% get(x = .)", "+call system"},
	{"'httr' |> library(package = _, character.only = TRUE)", "+import httr"},
	{"x |> get()", "+computed name"},
	{"(1 + 'x') |> get()", "+computed name"},
	{"pacman::p_load(char = p)", "+computed import"},
	{"do.call(library, list('httr', character.only = TRUE))", "+computed import"},
	{"lapply('stats', library, package = p, character.only = TRUE)", "+computed import"},
	{"c <- function(...) p; lapply(c('stats'), library, character.only = TRUE)", "+computed import"},
	{"`::`(httr, GET)('x')", "+import httr"},
	// What is passed on, or is found by a name that is no literal.
	{"sapply('system', get)[[1]]('ls')", "+computed name"},
	{"Map(str2lang, 'system(1)')", "+computed code"},
	{"do.call(parse, list(text = x))", "+computed code"},
	{"do.call('get', list(x))", "+computed name"},
	{"p <- parse; eval(p(text = 'system(1)'))", "+call system"},
	{"f <- 'system'; sapply('ls', f)", "+computed name"},
	{"sapply('ls', paste0('sys', 'tem'))", "+computed name"},
	{"h <- function() do.call(f, list('ls')); f <- 'system'; h()", "+computed name"},
	{"function(f) do.call(f, list('ls'))", "+computed name"},
	{"assign('f', 'system'); match.fun(f)('ls')", "+computed name"},
	{"l <- list(a = library); l$a(httr)", "+computed import"},
	{"x$l <- library; x$l(httr)", "+computed import"},
	{"l <- library; eval(parse(text = 'l(httr)'))", "+import httr"},
	{"eval(parse(text = 'l <- library')); l(httr)", "+import httr"},
	{"ns <- asNamespace('httr'); ns$GET('x')", "+call httr::GET"},
	{"baseenv() -> e; e$system('ls')", "+call system"},
	{"(baseenv())$system('ls')", "+call system"},
	{"g <- baseenv; g()$system('ls')", "+call system"},
	{"baseenv()$library(httr)", "+import httr"},
	{"with(list(f = 'system'), do.call(f, list('ls')))", "+computed name"},
	{"function(f = 'system') sapply('ls', f)", "+computed name"},
	{"eval(parse(text = \"f <- 'system'\")); do.call(f, list('ls'))", "+computed name"},
	{"h <- function() l(httr); eval(parse(text = 'l <- library')); h()", "+computed import"},
	// Definitions that need not hold where the name is used.
	{"if (FALSE)\nsystem <- function(x) 1\nsystem('ls')", "+call system"},
	{"if (FALSE) { system <- function(x) 1 }\nsystem('ls')", "+call system"},
	{"system <- function(x) 1; evalq(system('ls'), baseenv())", "+call system"},
	{"if (FALSE) f <- sum\nf <- system\nf('ls')", "+call system"},
	{"if (FALSE) system <- sum\nsystem('ls')", "+call system"},
	{"system <- sapply('ls', system)", "+use system"},
	{"for (system in sapply('ls', system)) 1", "+use system"},
	{"f <- function(system) 1\nsapply('ls', system)", "+use system"},
	{"x <- df[y[[1]], 2]; f(df[y[[1]], 2], system)", "+use system"},
	// What only looks like it.
	{"sapply(x, f); function(x, f) sapply(x, f)", "call sapply; use x; use f; call sapply"},
	{"Filter(Negate(is.null), x)", "call Filter; call Negate; use is.null; use x"},
	{"f <- function(x) 1\ndo.call(f, list(1))", "call do.call; call list"},
	{"x <- 1\nsystem <-\n  2\nprint(system)", "call print"},
	{"# library(httr)", ""},
	{"x <- \"library(httr)\"", ""},
	{"x <- r\"(library(httr) \" )\"", ""},
	{"library(httr2)", "call library; import httr2"},
	{"x$system('ls')", "use x"},
	{"self$eval(x)", "use self; use x"},
	{"x@system", "use x"},
	{"f(system = 1)", "call f"},
	{"function(system = 1, b) system + b", ""},
	{"system <- 5; system + 1", ""},
	{"for (system in 1:3) print(system)", "call print"},
	{"system <- function(x) 1; system('ls')", ""},
	{"list('system')", "call list"},
	{"do.call(rbind, x)", "call do.call; use rbind; use x"},
	{"function(package) 1", ""},
	{"x[['system']]", "use x"},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanEnds(t *testing.T) {
	lextest.Hostile(t, scan, "(", "[", "[[", "{", "'", "`", "r\"(", "%", "f(", "library(", "get(paste0(", "parse(text='",
		"a<-", "a->", "function(a)", "\\(x)", "f(library,", "a<-paste0(a,a);", "a$", "x[1]<-", "get(x)\n",
		"a::", "|>", "'a'|>get()", "\n", "a<-\n", "a<-b;b<-a;", "c(", "get(c(", "for(a in ", "a->", "a<-function(a)a\n",
		"e<-baseenv()\n", "baseenv()$", "((e))$a;",
		"lapply(c('a'),library)", "parse(text=r\"(", "r\"-", "r\"-(", "]]", "{\na<-1\n", "f(a=", "\\(x){", "if(a)\n")
	var aliases strings.Builder
	for i := range 20 {
		for j := range 9 {
			fmt.Fprintf(&aliases, "a%d<-a%d;", i, (9*i+j)%20)
		}
	}
	lextest.Hostile(t, scan, aliases.String())
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, "library(ggplot2)\nx <- c(1, 2, 3) # words\n"+
		"f <- function(a, b = 2) {\n  y <- sapply(a, function(i) i * b)\n  paste0(\"y\", y)\n}\nprint(f(x))")
}

func TestLibraryName(t *testing.T) {
	for in, want := range map[string]string{"jsonlite@1.8.8": "jsonlite", "data.table": "data.table"} {
		if got := libraryName(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
