package backendtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) programC(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "c"}, "gcc")
	t.Run("what C++ refuses", func(t *testing.T) {
		res := run(t, sb, `
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct point { int x, y; };
static void *square(void *arg) { int *n = arg; *n *= *n; return NULL; }
int main(void) {
  int *p = malloc(4 * sizeof *p), class = 7;
  struct point at = { .y = 2, .x = 1 };
  pthread_t thread;
  pthread_create(&thread, NULL, square, &class);
  pthread_join(thread, NULL);
  char *copy = strdup("copied");
  printf("%ld %d %d %s %.0f\n", __STDC_VERSION__, at.x + at.y, class, copy, sqrt(class) + M_PI);
  free(copy), free(p);
}
`, nil)
		wantLines(t, res, "201710 3 49 copied 10")
	})
	t.Run("c11", func(t *testing.T) {
		wantLines(t, run(t, sb, "#include <stdio.h>\nint main(void) { printf(\"%ld\\n\", __STDC_VERSION__); }", &llmsandbox.RunOptions{Standard: "11"}), "201112")
		if _, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Standard: "c++20"}); err == nil || !strings.Contains(err.Error(), "use one like c11 or gnu17") {
			t.Errorf("C by a standard of C++: %v, want an error that names standards of C", err)
		}
	})
	t.Run("no kernel", func(t *testing.T) {
		if _, err := sb.Kernel(testContext(t), "", nil); !errors.Is(err, llmsandbox.ErrUnsupported) {
			t.Errorf("open a C kernel: %v, want %v", err, llmsandbox.ErrUnsupported)
		}
	})
}

func (s *suite) programCPP(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "cpp"}, "g++")
	t.Run("threads and regex", func(t *testing.T) {
		res := run(t, sb, `
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <regex>
#include <thread>
#include <vector>
int main() {
  std::vector<std::thread> threads;
  std::atomic<long> sum{0};
  std::mutex m;
  std::map<int, int> seen;
  for (int i = 0; i < 16; i++)
    threads.emplace_back([&, i] { for (int n = 0; n < 1000; n++) sum += n; std::lock_guard<std::mutex> l(m); seen[i]++; });
  for (auto& t : threads) t.join();
  std::cout << sum << ' ' << seen.size() << '\n';
  auto f = std::async(std::launch::async, [] { std::vector<long> v(1000000, 2); return std::accumulate(v.begin(), v.end(), 0L); });
  std::cout << f.get() << '\n';
  std::regex re(R"((\w+)@(\w+)\.org)");
  std::smatch match;
  std::string text = "write to ann@example.org today";
  if (std::regex_search(text, match, re)) std::cout << match[1] << ' ' << match[2] << '\n';
  std::ofstream("out.txt") << "file";
  std::optional<std::uintmax_t> size = std::filesystem::file_size("out.txt");
  std::cout << size.value_or(0) << '\n';
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::cout << e.what() << '\n'; }
}
`, &llmsandbox.RunOptions{Timeout: 5 * time.Minute}) // a minute is too short for a compiler on a busy machine
		wantLines(t, res, "7992000 16", "2000000", "ann example", "4", "caught")
	})
	t.Run("c++20", func(t *testing.T) {
		code := `
#include <concepts>
#include <iostream>
#include <ranges>
#include <span>
template <std::integral T> T twice(T n) { return 2 * n; }
int main() {
  int a[] = {1, 2, 3, 4, 5};
  for (int n : std::span(a) | std::views::filter([](int n) { return n % 2; }) | std::views::transform(twice<int>)) std::cout << n << ' ';
  std::cout << (1 <=> 2 < 0) << '\n';
}
`
		wantLines(t, run(t, sb, code, &llmsandbox.RunOptions{Standard: "c++20"}), "2 6 10 1")
		if res := run(t, sb, code, nil); res.Status != llmsandbox.StatusError || res.ExitCode == 0 {
			t.Errorf("c++20 code compiled as the default, C++17: %+v, want Status = StatusError, ExitCode != 0", res)
		}
	})
}
