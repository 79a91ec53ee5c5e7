package cpp

import (
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

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
