package cpp

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"fast numeric code", "algorithms and data structures", "systems programming"},
	PackageManager: "apt",
	Version:        []string{"g++", "--version"},
	Known:          []string{"boost/version.hpp", "Eigen/Core", "nlohmann/json.hpp", "fmt/core.h", "gtest/gtest.h", "zlib.h", "curl/curl.h", "openssl/ssl.h", "sqlite3.h"},
	Present: func(names []string) []string {
		const find = "for n in \"$@\"; do for d in /usr/include /usr/local/include /usr/include/eigen3 /usr/include/*-linux-gnu; do if [ -e \"$d/$n\" ]; then echo \"$n\"; break; fi; done; done"
		return append([]string{"sh", "-c", find, "sh"}, names...)
	},
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
