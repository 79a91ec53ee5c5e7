package cpp

import "github.com/llmsandbox/llmsandbox/internal/language"

var detailsOfC = language.Details{
	UseCases:       []string{"systems programming", "algorithms close to the machine", "teaching and exercises"},
	PackageManager: "apt",
	Version:        []string{"gcc", "--version"},
	Known:          []string{"zlib.h", "curl/curl.h", "openssl/ssl.h", "sqlite3.h"},
	Present:        headers,
	Examples: []language.Example{
		{
			Title: "Hello", Description: "Compiler errors are in stderr.",
			Code: `#include <stdio.h>

int main(void) {
    printf("Hello from C!\n");
}
`,
		},
		{
			Title: "Sort", Description: "The standard library's quicksort.",
			Code: `#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    int v[] = {5, 3, 9, 1};
    size_t n = sizeof v / sizeof *v;
    qsort(v, n, sizeof *v, ascending);
    for (size_t i = 0; i < n; i++) printf("%d ", v[i]);
    printf("\n");
}
`,
		},
	},
}

// headers is the command that prints which headers are installed.
func headers(names []string) []string {
	const find = "for n in \"$@\"; do for d in /usr/include /usr/local/include /usr/include/eigen3 /usr/include/*-linux-gnu; do if [ -e \"$d/$n\" ]; then echo \"$n\"; break; fi; done; done"
	return append([]string{"sh", "-c", find, "sh"}, names...)
}

var details = language.Details{
	UseCases:       []string{"fast numeric code", "algorithms and data structures", "systems programming"},
	PackageManager: "apt",
	Version:        []string{"g++", "--version"},
	Known:          []string{"boost/version.hpp", "Eigen/Core", "nlohmann/json.hpp", "fmt/core.h", "gtest/gtest.h", "zlib.h", "curl/curl.h", "openssl/ssl.h", "sqlite3.h"},
	Present:        headers,
	Examples: []language.Example{
		{
			Title: "Hello", Description: "It is compiled first; an error of the compiler is in stderr.",
			Code: `#include <iostream>

int main() {
    std::cout << "Hello from C++!" << std::endl;
}
`,
		},
		{
			Title: "Sort and search", Description: "The standard library's algorithms.",
			Code: `#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::vector<int> v{5, 3, 9, 1};
    std::sort(v.begin(), v.end());
    for (int n : v) std::cout << n << ' ';
    std::cout << std::binary_search(v.begin(), v.end(), 9) << '\n';
}
`,
		},
	},
}
