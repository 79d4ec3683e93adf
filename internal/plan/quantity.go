package plan

import (
	"math"
	"strconv"
	"strings"
)

// units are the suffixes of amounts of memory, in bytes: those of Kubernetes,
// and those of Docker, whose letters stand for powers of 1024.
var (
	kubernetesUnits = map[string]float64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "m": 1e-3,
	}
	dockerUnits = map[string]float64{
		"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40,
	}
)

// quantity is a number with a suffix; ok is false for anything else.
func quantity(s string, units map[string]float64) (float64, bool) {
	s = strings.TrimSpace(s)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	n, err := strconv.ParseFloat(s[:end], 64)
	unit, ok := units[s[end:]]
	return n * unit, err == nil && ok && n > 0 && !math.IsInf(n, 0)
}

// megabytes reads Docker's amounts, rounded up to MiB; nil for none.
func megabytes(s string) *int64 {
	n, ok := quantity(strings.ToLower(s), dockerUnits)
	return mebibytes(n, ok)
}

func mebibytes(n float64, ok bool) *int64 {
	if !ok || n > math.MaxInt64/2 {
		return nil
	}
	return new(int64(math.Ceil(n / (1 << 20))))
}
