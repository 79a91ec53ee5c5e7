// The driver of C++ kernels, interpreted by clang-repl: requests on descriptor 3, replies
// on 4. next() takes a request, writes the cell into a file, and the line that includes
// it to the interpreter's own input, which is the FIFO on descriptor 0.
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <typeinfo>
#include <unistd.h>

namespace llmsandbox {
struct Cell {
  bool running = false, input = false, compiled = false, ended = false;
  std::string id, mark, value, code;
};
inline Cell cell;
inline int count = 0, lines = -1, stderr_kept = -1;
inline std::string dir, diagnostics;
inline const size_t longest = 1 << 20;

inline void all(int fd, const std::string &s) {
  for (size_t at = 0; at < s.size();) {
    ssize_t n = write(fd, s.data() + at, s.size() - at);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) at += n;
  }
}

// valid leaves of bytes what is UTF-8.
inline std::string json(const std::string &s) {
  std::string out = "\"";
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    bool good = n > 0 && i + n <= s.size();
    for (size_t k = 1; good && k < n; k++) good = ((unsigned char)s[i + k] & 0xc0) == 0x80;
    if (!good) {
      out += "\\ufffd";
      i++;
      continue;
    }
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c < 32) {
      char b[8];
      snprintf(b, sizeof b, "\\u%04x", c);
      out += b;
    } else out.append(s, i, n);
    i += n;
  }
  return out + '"';
}

inline std::string cut(std::string s, size_t most) {
  if (s.size() > most) {
    s.resize(most);
    s += "… (cut)";
  }
  return s;
}

// --- requests: flat objects, text in base64 ---------------------------------------
inline bool line(std::string &into) {
  static std::string buffered;
  for (;;) {
    size_t end = buffered.find('\n');
    if (end != std::string::npos) {
      into = buffered.substr(0, end);
      buffered.erase(0, end + 1);
      return true;
    }
    char b[65536];
    ssize_t n = read(3, b, sizeof b);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    buffered.append(b, n);
  }
}

inline std::string field(const std::string &line, const std::string &name) {
  size_t at = line.find("\"" + name + "\":");
  if (at == std::string::npos) return "";
  at += name.size() + 3;
  if (line[at] == '"') return line.substr(at + 1, line.find('"', at + 1) - at - 1);
  return line.substr(at, line.find_first_of(",}", at) - at);
}

inline std::string text(const std::string &line, const std::string &name) {
  std::string out;
  unsigned bits = 0, have = 0;
  for (char c : field(line, name + "64")) {
    int v = c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= '0' && c <= '9' ? c - '0' + 52 : c == '+' ? 62 : c == '/' ? 63 : -1;
    if (v < 0) break;
    bits = bits << 6 | v;
    if ((have += 6) >= 8) out += char(bits >> (have -= 8));
  }
  return out;
}

// --- input ------------------------------------------------------------------------
inline bool ask(std::string &into) {
  if (!cell.running || !cell.input) return false;
  all(4, "{\"event\":\"input\",\"id\":" + cell.id + ",\"prompt\":\"\",\"password\":false}\n");
  std::string l;
  do
    if (!line(l)) _exit(0);
  while (field(l, "op") != "input");
  if (field(l, "eof") == "true") return false;
  into = text(l, "text") + "\n";
  return true;
}

inline ssize_t feed(void *, char *to, size_t n) {
  static std::string rest;
  if (rest.empty() && !ask(rest)) return 0;
  n = rest.copy(to, n);
  rest.erase(0, n);
  return n;
}

// --- values -----------------------------------------------------------------------
template <class T> auto shown(std::ostream &o, const T &v, int) -> decltype(o << v, void()) { o << v; }
template <class T> auto shown(std::ostream &o, const T &v, long) -> decltype(v.begin(), v.end(), void());
template <class A, class B> void shown(std::ostream &o, const std::pair<A, B> &v, long) {
  o << '(';
  shown(o, v.first, 0);
  o << ", ";
  shown(o, v.second, 0);
  o << ')';
}
template <class T> void shown(std::ostream &o, const T &, ...) {
  int bad = 0;
  char *name = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &bad);
  o << '(' << (name ? name : typeid(T).name()) << ')';
  free(name);
}
inline void shown(std::ostream &o, const std::string &v, int) { o << '"' << v << '"'; }
inline void shown(std::ostream &o, const char *v, int) { o << '"' << v << '"'; }
inline void shown(std::ostream &o, const bool &v, int) { o << (v ? "true" : "false"); }
template <class T> auto shown(std::ostream &o, const T &v, long) -> decltype(v.begin(), v.end(), void()) {
  const char *between = "{ ";
  for (const auto &e : v) {
    o << between;
    shown(o, e, 0);
    between = ", ";
  }
  o << (*between == '{' ? "{ }" : " }");
}
struct Shower {};
// With a value of void, the comma is the language's own and nothing is shown.
template <class T> void operator,(Shower, const T &v) {
  std::ostringstream o;
  shown(o, v, 0);
  cell.value = o.str();
}

// --- cells ------------------------------------------------------------------------
inline std::string contents(const std::string &path) {
  std::string s;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char b[4096];
  for (ssize_t n; fd >= 0 && (n = read(fd, b, sizeof b)) > 0 && s.size() < longest;) s.append(b, n);
  close(fd);
  return s;
}

inline void finish(const std::string &end) {
  std::cout.flush();
  std::cerr.flush();
  fflush(nullptr);
  std::string mark = std::string(1, '\0') + cell.mark;
  all(1, mark);
  all(2, mark);
  cell.running = false;
  all(4, "{\"event\":\"done\",\"id\":" + cell.id + ",\"count\":" + std::to_string(count) + "," + end + "}\n");
}

inline std::string error(const std::string &name, const std::string &message, const std::string &trace) {
  return "\"status\":\"error\",\"error\":{\"name\":" + json(name) + ",\"message\":" + json(cut(message, 100000)) + ",\"traceback\":" + json(cut(trace, 100000)) + "}";
}

inline void restore() {
  if (stderr_kept < 0) return;
  dup2(stderr_kept, 2);
  close(stderr_kept);
  stderr_kept = -1;
}

// begin is a cell's first statement: it has been compiled.
inline int begin() {
  restore();
  cell.compiled = true;
  return 0;
}
inline int end() {
  cell.ended = true;
  return 0;
}

inline void close_cell() {
  restore();
  if (cell.ended) {
    finish("\"status\":\"ok\"" + (cell.value.empty() ? "" : ",\"value\":{\"text/plain\":" + json(cut(cell.value, longest)) + "}"));
    return;
  }
  std::string said = contents(diagnostics), tidy;
  std::istringstream in(said);
  for (std::string l; std::getline(in, l);)
    if (l.compare(0, 21, "In file included from") != 0 && l != "error: Parsing failed.") tidy += l + "\n";
  size_t at = tidy.find("error: ");
  std::string message = at == std::string::npos ? "the cell did not compile" : tidy.substr(at + 7, tidy.find('\n', at) - at - 7);
  finish(error("CompileError", message, tidy));
}

// split finds where the last expression begins, if the code ends in one.
inline size_t split(const std::string &s) {
  size_t start = 0, last = std::string::npos;
  int depth = 0;
  for (size_t i = 0; i < s.size(); i++) {
    char c = s[i];
    if (c == '/' && i + 1 < s.size() && s[i + 1] == '/') {
      while (i < s.size() && s[i] != '\n') i++;
      continue;
    }
    if (c == '/' && i + 1 < s.size() && s[i + 1] == '*') {
      i = s.find("*/", i + 2);
      if (i == std::string::npos) break;
      i++;
      continue;
    }
    if (isspace((unsigned char)c)) continue;
    if (c == '#' && last == std::string::npos) { // a directive
      while (i < s.size() && s[i] != '\n') i += s[i] == '\\' ? 2 : 1;
      start = i + 1;
      continue;
    }
    if (last == std::string::npos) start = i;
    last = i;
    if (c == '"' || (c == '\'' && (i == 0 || !isalnum((unsigned char)s[i - 1])))) {
      for (i++; i < s.size() && s[i] != c; i++)
        if (s[i] == '\\') i++;
      last = i;
    } else if (c == '(' || c == '[' || c == '{') depth++;
    else if (c == ')' || c == ']' || c == '}') depth--;
    if (depth != 0 || (c != ';' && c != '}')) continue;
    size_t after = s.find_first_not_of(" \t\n", i + 1);
    bool goes_on = c == '}' && after != std::string::npos && std::string(".,;)?=<>|[(").find(s[after]) != std::string::npos;
    if (!goes_on) last = std::string::npos;
  }
  return last == std::string::npos ? std::string::npos : start;
}

inline void open_cell(const std::string &r) {
  std::string n = std::to_string(++count), name = "cell[" + n + "]", code = text(r, "code");
  cell = Cell();
  cell.running = true;
  cell.id = field(r, "id");
  cell.mark = field(r, "mark");
  cell.input = field(r, "stdin") == "true";
  std::string begin = "int llmsandbox_b" + n + " = llmsandbox::begin();\n", end = "\nint llmsandbox_e" + n + " = llmsandbox::end();\n";
  size_t at = split(code);
  if (at != std::string::npos)
    code = code.substr(0, at) + "int llmsandbox_v" + n + " = (llmsandbox::Shower(), (" + code.substr(at) + "\n), 0);";
  std::string path = dir + "/" + name;
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  all(fd, begin + "#line 1 \"" + name + "\"\n" + code + end);
  close(fd);
  // What is said until the cell begins is the compiler's.
  stderr_kept = fcntl(2, F_DUPFD_CLOEXEC, 10);
  fd = open(diagnostics.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
  dup2(fd, 2);
  close(fd);
  all(lines, "#include \"" + path + "\"\nint llmsandbox_n" + n + " = llmsandbox::next();\n");
}

inline void leave(int status, void *) {
  if (cell.running) finish("\"status\":\"exit\",\"exit_code\":" + std::to_string(status & 255));
  _exit(status);
}

// An uncaught exception ends the interpreter, and with it the state.
inline void terminated() {
  std::string name = "terminate", message = "std::terminate was called";
  if (std::type_info *t = abi::__cxa_current_exception_type()) {
    int bad = 0;
    char *plain = abi::__cxa_demangle(t->name(), nullptr, nullptr, &bad);
    name = plain ? plain : t->name();
    message = "an exception that nobody catches ends the interpreter";
    try {
      throw;
    } catch (const std::exception &e) {
      message = e.what();
    } catch (...) {
    }
  }
  if (cell.running) finish(error(name, message, name + ": " + message) + ",\"state_lost\":true");
  _exit(134);
}

inline void setup() {
  if (__clang_major__ < 17) {
    fprintf(stderr, "clang-repl %d falls over plain statements: install a newer one, such as clang-tools-19\n", __clang_major__);
    _exit(127);
  }
  for (int fd : {3, 4}) fcntl(fd, F_SETFD, FD_CLOEXEC);
  dir = getenv("LLMSANDBOX_KERNEL_DIR");
  unsetenv("LLMSANDBOX_KERNEL_DIR");
  diagnostics = dir + "/diagnostics";
  lines = fcntl(0, F_DUPFD_CLOEXEC, 10);
  cookie_io_functions_t io = {feed, nullptr, nullptr, nullptr};
  stdin = fopencookie(nullptr, "r", io);
  struct Input : std::streambuf {
    char b[1];
    int underflow() override {
      int c = fgetc(stdin);
      if (c == EOF) {
        clearerr(stdin);
        return traits_type::eof();
      }
      b[0] = c;
      setg(b, b, b + 1);
      return (unsigned char)c;
    }
  };
  static Input input;
  std::cin.rdbuf(&input);
  on_exit(leave, nullptr);
  std::set_terminate(terminated);
  all(4, "{\"event\":\"ready\",\"language\":\"cpp\",\"version\":" + json(__clang_version__) + ",\"flavor\":\"clang-repl\"}\n");
}

inline int next() {
  if (count == 0 && lines < 0) setup();
  if (cell.running) close_cell();
  for (std::string r; line(r);) {
    std::string op = field(r, "op"), id = field(r, "id");
    if (op == "run") {
      open_cell(r);
      return 0;
    }
    if (op == "input") continue; // of a cell that is over
    std::string reply = op == "complete" ? "\"matches\":[],\"start\":" + field(r, "cursor") + ",\"end\":" + field(r, "cursor")
      : op == "inspect" ? "\"text\":\"\""
      : op == "variables" ? "\"error\":\"clang-repl cannot list variables\""
      : op == "reset" ? "\"error\":\"clang-repl cannot forget: restart the kernel\"" : "\"error\":\"unknown request\"";
    all(4, "{\"event\":\"reply\",\"id\":" + id + "," + reply + "}\n");
  }
  _exit(0);
}
} // namespace llmsandbox
