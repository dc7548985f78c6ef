// Package units prints and reads sizes and rates as the field writes them: KiB and
// MiB are powers of 1024, kB and MB of 1000.
package units

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes is a size. It is a flag.Value.
type Bytes int64

var binary = []struct {
	name string
	size Bytes
}{{"GiB", humanize.GiByte}, {"MiB", humanize.MiByte}, {"KiB", humanize.KiByte}}

// String is b in a binary unit if it is a whole number of them, below 1024, or else
// with four digits in a decimal unit.
func (b Bytes) String() string {
	for _, u := range binary {
		if b >= u.size && b%u.size == 0 && b/u.size < 1024 {
			return fmt.Sprintf("%d %s", b/u.size, u.name)
		}
	}
	v, prefix := humanize.ComputeSI(float64(b))
	return fmt.Sprintf("%.4g %sB", v, prefix)
}

// Set reads a number with or without one of the units B, kB, KB, MB, GB, KiB, MiB
// and GiB, as in 38MB.
func (b *Bytes) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 38MB or 64MiB", s)
	}
	*b = Bytes(n)
	return nil
}

// A Rate is in bytes a second.
type Rate float64

// RateOf is that of moving so many bytes in so much time, 0 if it took none.
func RateOf(b Bytes, took time.Duration) Rate {
	if took <= 0 {
		return 0
	}
	return Rate(float64(b) / took.Seconds())
}

// Time is how long b takes at the rate.
func (r Rate) Time(b Bytes) time.Duration {
	if r <= 0 {
		return 0
	}
	return time.Duration(float64(b) / float64(r) * 1e9)
}

// String is the rate in GB/s, the unit of buses, or in MB/s if it is below one.
func (r Rate) String() string {
	if r < 1e9 {
		return fmt.Sprintf("%.1f MB/s", float64(r)/1e6)
	}
	return fmt.Sprintf("%.1f GB/s", float64(r)/1e9)
}

// Time prints d with three digits.
func Time(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	digits := math.Pow(10, math.Floor(math.Log10(math.Abs(float64(d))))-2)
	if digits <= 1 {
		return d.String()
	}
	return time.Duration(math.Round(float64(d)/digits) * digits).String()
}
