package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/limit"
)

// unlimited is the value of a flag that lifts a limit.
const unlimited = "unlimited"

const orUnlimited = ", or '" + unlimited + "'"

// into returns a function that keeps what has been read of a flag. Of several, the first error is that of cmp.Or. What
// is filled in must not be read in the same statement.
func into[T any](to *T) func(T, error) error {
	return func(value T, err error) error {
		*to = value
		return err
	}
}

// sizeFlag reads a size of at least least bytes; an empty text is 0.
func sizeFlag(name, text string, least int64) (int64, error) {
	switch text {
	case "":
		return 0, nil
	case unlimited:
		return llmsandbox.Unlimited, nil
	}
	n, err := bytesize.Parse(text)
	switch {
	case errors.Is(err, bytesize.ErrTooLarge):
		return 0, fmt.Errorf("--%s %s is too large: use '%s' for no limit", name, text, unlimited)
	case err != nil:
		return 0, fmt.Errorf("--%s %q: use a size such as 512m or 2g%s", name, text, orUnlimited)
	case n < least:
		return 0, tooSmall(name, text, flagSize(least)+orUnlimited)
	}
	return n, nil
}

// flagSize writes a size as sizeFlag reads it.
func flagSize(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + "m"
	}
	return strconv.FormatInt(n, 10)
}

// cpusFlag reads a number of CPUs; an empty text is 0.
func cpusFlag(text string) (float64, error) {
	parse := func() (float64, error) { return strconv.ParseFloat(text, 64) }
	return limitFlag("cpus", text, "a number such as 0.5 or 2", parse, limit.MinCPUs, limit.MaxCPUs)
}

// pidsFlag reads a number of processes; an empty text is 0.
func pidsFlag(text string) (int64, error) {
	parse := func() (int64, error) { return strconv.ParseInt(text, 10, 64) }
	return limitFlag("pids", text, "a whole number such as 64", parse, 1, limit.MaxPIDs)
}

// limitFlag reads a limit that is not below least nor above most; an empty text is 0.
func limitFlag[N int64 | float64](name, text, use string, parse func() (N, error), least, most N) (N, error) {
	switch text {
	case "":
		return 0, nil
	case unlimited:
		return llmsandbox.Unlimited, nil
	}
	n, err := parse()
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || n != n: // which is no number
		return 0, fmt.Errorf("--%s %q: use %s%s", name, text, use, orUnlimited)
	case n < least:
		return 0, tooSmall(name, text, fmt.Sprint(least)+orUnlimited)
	case n > most:
		return 0, tooLarge(name, text, fmt.Sprint(most)+orUnlimited)
	}
	return n, nil
}

// timeoutFlag reads a duration, of which a bare number is seconds; an empty text is 0.
func timeoutFlag(name, text string) (time.Duration, error) {
	if text == unlimited {
		return llmsandbox.Unlimited, nil
	}
	return readDuration(name, text, "s", orUnlimited)
}

// durationFlag reads a duration; an empty text is 0.
func durationFlag(name, text string) (time.Duration, error) { return readDuration(name, text, "", "") }

// readDuration reads one whose bare numbers have a unit, if any.
func readDuration(name, text, unit, or string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		unit = ""
	}
	d, err := parseDuration(text + unit)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, tooLarge(name, text, strconv.FormatInt(maxDays, 10)+"d"+or)
	case err != nil:
		return 0, fmt.Errorf("--%s %q: use a duration such as 30s, 10m or 1d%s", name, text, or)
	case d < limit.MinTimeout:
		return 0, tooSmall(name, text, limit.MinTimeout.String()+or)
	}
	return d, nil
}

const oneDay = 24 * time.Hour

// maxDays is the longest duration.
const maxDays = math.MaxInt64 / int64(oneDay)

// parseDuration reads a duration as time.ParseDuration does, also with days in front: 7d,
// 1d12h. One that does not fit is strconv.ErrRange.
func parseDuration(text string) (time.Duration, error) {
	days, rest, given := strings.Cut(text, "d")
	if !given {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil {
		return 0, err
	}
	rest = cmp.Or(rest, "0")
	d, err := time.ParseDuration(rest)
	if err != nil {
		// It says the same of what is no duration and of what is too long for one.
		if number := strings.TrimRight(rest, "hms"); len(number) < len(rest) {
			if _, bad := strconv.ParseUint(number, 10, 64); bad == nil || errors.Is(bad, strconv.ErrRange) {
				err = strconv.ErrRange
			}
		}
		return 0, err
	}
	switch {
	case given && d < 0:
		return 0, strconv.ErrSyntax
	case int64(n) > maxDays || int64(n) == maxDays && d > 0:
		return 0, strconv.ErrRange
	}
	return time.Duration(n)*oneDay + d, nil
}

func tooSmall(name, text, least string) error {
	return fmt.Errorf("--%s %s is too small: use at least %s", name, text, least)
}

func tooLarge(name, text, most string) error {
	return fmt.Errorf("--%s %s is too large: use at most %s", name, text, most)
}

// flagError says what is wrong with a flag that cannot be read.
func flagError(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedName() == "http" {
		return fmt.Errorf("%w: llmsandbox serve has the tools of llmsandbox mcp over HTTP", err)
	}
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return err
	}
	name := value.GetFlag().Name
	switch value.GetFlag().Value.Type() {
	case "int":
		return fmt.Errorf("--%s %q: use a whole number", name, value.GetValue())
	case "bool":
		return fmt.Errorf("--%s=%s: use --%s or --%s=false", name, value.GetValue(), name, name)
	}
	return err
}
