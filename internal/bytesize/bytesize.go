// Package bytesize reads and writes sizes as people do: 512m, 1.5GiB, 64 KB.
package bytesize

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrTooLarge: a size does not fit into an int64.
var ErrTooLarge = errors.New("too large")

// Parse reads a size in bytes. A number without a unit is bytes; k, m, g and t, with
// or without b, ib or B behind, are powers of 1024, as container engines read them.
func Parse(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, unit := text[:end], strings.TrimSpace(text[end:])
	factor, ok := map[string]float64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}[strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || v < 0 || unit == "i" {
		return 0, fmt.Errorf("size %q: use a number with k, m, g or t behind it, such as 512m", s)
	}
	v *= factor
	if v >= math.MaxInt64 || v != v {
		return 0, fmt.Errorf("size %q: %w", s, ErrTooLarge)
	}
	return int64(v), nil
}

// Format writes a size with a binary unit and one decimal where it is not zero, such as
// "1.5 GiB" or "512 MiB".
func Format(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v := float64(n) / 1024
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + units[i:i+1] + "iB"
}
