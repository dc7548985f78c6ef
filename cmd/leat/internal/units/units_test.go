package units_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/cmd/leat/internal/units"
)

func TestBytes(t *testing.T) {
	for text, size := range map[string]units.Bytes{
		"64 KiB": 64 << 10, "4 MiB": 4 << 20, "1 GiB": 1 << 30, "12 B": 12, "1.5 kB": 1500,
		"38.54 MB": 37632 << 10,
	} {
		require.Equal(t, text, size.String())
	}
	for text, size := range map[string]units.Bytes{
		"38MB": 38e6, "64 MiB": 64 << 20, "1.5kB": 1500, "2KB": 2000, "7": 7, "9B": 9, "0.5GiB": 1 << 29, "1GB": 1e9,
	} {
		var b units.Bytes
		require.NoError(t, b.Set(text), text)
		require.Equal(t, size, b, text)
	}
	for _, text := range []string{"", "MB", "-1", "12 parsecs", "NaN", "1e30", "infMB"} {
		require.Error(t, new(units.Bytes).Set(text), text)
	}
}

func TestWholeBinarySizesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := units.Bytes(rapid.Int64Range(1, 1023).Draw(t, "n")) << rapid.SampledFrom([]int{10, 20, 30}).Draw(t, "unit")
		var got units.Bytes
		require.NoError(t, got.Set(want.String()))
		require.Equal(t, want, got)
	})
}

func TestRateAndTime(t *testing.T) {
	r := units.RateOf(55_500_000, time.Millisecond)
	require.Equal(t, "55.5 GB/s", r.String())
	require.Equal(t, time.Millisecond, r.Time(55_500_000))
	require.Equal(t, "12.0 MB/s", units.Rate(12e6).String())
	require.Zero(t, units.RateOf(1, 0))
	require.Zero(t, units.Rate(0).Time(1))
	for text, d := range map[string]time.Duration{"1.23ms": 1_234_567, "12.3µs": 12_345, "999ns": 999, "0s": 0, "1m2s": 62_011 * time.Millisecond} {
		require.Equal(t, text, units.Time(d))
	}
}
