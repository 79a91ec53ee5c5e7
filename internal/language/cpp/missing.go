package cpp

import "github.com/llmsandbox/llmsandbox/internal/language"

// missing has the packages of well-known headers, or of the directories that hold them.
var missing = language.Missing{
	Messages: [][2]string{{"fatal error: ", ": No such file or directory"}, {"'", "' file not found"}},
	Libraries: map[string]string{
		"Eigen": "libeigen3-dev", "SDL2": "libsdl2-dev", "armadillo": "libarmadillo-dev", "boost": "libboost-dev", "catch2": "catch2", "cblas.h": "libopenblas-dev",
		"curl": "libcurl4-openssl-dev", "doctest": "doctest-dev", "eigen3": "libeigen3-dev", "fftw3.h": "libfftw3-dev", "fmt": "libfmt-dev", "gmp.h": "libgmp-dev",
		"gmpxx.h": "libgmp-dev", "gsl": "libgsl-dev", "gtest": "libgtest-dev", "jsoncpp": "libjsoncpp-dev", "mpfr.h": "libmpfr-dev", "nlohmann": "nlohmann-json3-dev", "openssl": "libssl-dev",
		"png.h": "libpng-dev", "rapidjson": "rapidjson-dev", "readline": "libreadline-dev", "spdlog": "libspdlog-dev", "sqlite3.h": "libsqlite3-dev", "tbb": "libtbb-dev",
		"uuid": "uuid-dev", "yaml-cpp": "libyaml-cpp-dev", "zlib.h": "zlib1g-dev",
	},
	Files: true,
}
