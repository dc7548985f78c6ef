package kernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestChecksumOnTheDeviceIsChecksumOf(t *testing.T) {
	r := kerneltest.CPU(t)
	for n := range 66 {
		// An odd start leaves nothing aligned.
		in := randomBytes(uint64(n), n+1)
		require.Equal(t, ChecksumOf(in[1:]), checksummed(r, in, 1), "%d bytes", n)
	}
}

// The values were computed once and must stay: they may be stored.
func TestChecksumStaysTheSame(t *testing.T) {
	require.Zero(t, ChecksumOf(nil))
	// SplitMix64's first number for seed 0, and the length scrambled.
	require.Equal(t, uint64(0xe220a8397b1dcdaf)+mix(8), ChecksumOf(make([]byte, 8)))
	require.Equal(t, uint64(0xb78bc7f518097797), ChecksumOf(make([]byte, 8)))
}

func TestChecksumSeesWhatGoesWrongWithBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "bytes")
		sum := ChecksumOf(b)
		i, j := rapid.IntRange(0, len(b)-1).Draw(t, "i"), rapid.IntRange(0, len(b)-1).Draw(t, "j")

		changed := slices.Clone(b)
		changed[i] ^= rapid.ByteRange(1, 255).Draw(t, "change")
		require.NotEqual(t, sum, ChecksumOf(changed), "one byte changed")

		swapped := slices.Clone(b)
		swapped[i], swapped[j] = b[j], b[i]
		require.Equal(t, b[i] == b[j], sum == ChecksumOf(swapped), "two bytes swapped")

		require.NotEqual(t, sum, ChecksumOf(append(slices.Clone(b), 0)), "a zero more")
		require.NotEqual(t, sum, ChecksumOf(append(slices.Clone(b), b...)), "twice")
		require.NotEqual(t, sum, ChecksumOf(b[:len(b)-1]), "one byte less")
	})
}

func TestChecksumMistakes(t *testing.T) {
	r := kerneltest.CPU(t)
	err := Checksum(r.Stream, r.Alloc(16).Slice(4, 4), r.Alloc(1))
	require.ErrorContains(t, err, "out.Size() is 4, want 8")
	require.ErrorContains(t, err, "out.Address() % 8 is")
}

func checksummed(r *kerneltest.Rig, in []byte, from int64) uint64 {
	out, v := r.Alloc(8), r.Upload(in)
	require.NoError(r.T, Checksum(r.Stream, out, v.Slice(from, v.Size()-from)))
	return dtype.As[uint64](r.Download(out))[0]
}
