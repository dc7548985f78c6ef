//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device/driver"
)

func TestMappedPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(1, 9<<20).Draw(t, "bytes")
		mem, err := mapPages(bytes, rapid.IntRange(-1, 64).Draw(t, "node"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, int64(len(mem)), bytes)
		require.Less(t, int64(len(mem)), bytes+64<<10)
		require.Zero(t, start(mem)%4096)
		if bytes >= hugePage {
			require.Zero(t, start(mem)%hugePage)
		}
		require.Zero(t, mem[0])
		mem[0], mem[len(mem)-1] = 1, 1
		require.NoError(t, unmapPages(mem))
	})
}

// Each size is pinned the way that is faster for it, and freed the way it came.
func TestPinning(t *testing.T) {
	f, d := openFake(t, Options{})
	for _, c := range []struct {
		bytes       int64
		config      driver.HostConfig
		alloc, free []string
	}{
		{100, driver.HostConfig{}, []string{"cuMemHostAlloc"}, []string{"cuMemFreeHost"}},
		{mappedFrom - 1, driver.HostConfig{}, []string{"cuMemHostAlloc"}, []string{"cuMemFreeHost"}},
		{mappedFrom, driver.HostConfig{}, []string{"cuMemHostRegister_v2"}, []string{"cuMemHostUnregister"}},
		{mappedFrom + 1, driver.HostConfig{}, []string{"cuMemHostRegister_v2"}, []string{"cuMemHostUnregister"}},
		{mappedFrom, driver.HostConfig{Pageable: true}, nil, nil},
	} {
		f.reset()
		mem, err := d.AllocHost(c.bytes, c.config)
		require.NoError(t, err)
		require.Len(t, mem, int(c.bytes))
		require.Equal(t, c.bytes, int64(cap(mem)), "appending must not run into what lies behind")
		require.Zero(t, start(mem)%4096)
		require.Equal(t, c.alloc, f.callNames())
		f.reset()
		require.NoError(t, d.FreeHost(mem))
		require.Equal(t, c.free, f.callNames())
		require.ErrorIs(t, d.FreeHost(mem), driver.ErrInvalid, "freed twice")
	}
	require.Contains(t, d.Properties().Notes, "pinned memory of 2 MiB and more is mapped in huge pages and registered, ten times as fast as cuMemHostAlloc")
}

// What one way refuses the other may grant; what both refuse is ErrOutOfMemory,
// and the next call is healthy.
func TestPinningFallsBack(t *testing.T) {
	for _, c := range []struct {
		bytes         int64
		first, second string
	}{
		{mappedFrom, "cuMemHostRegister_v2", "cuMemHostAlloc"},
		{4096, "cuMemHostAlloc", "cuMemHostRegister_v2"},
	} {
		f, d := openFake(t, Options{})
		f.reset()
		f.fail(c.first, operatingSystem)
		mem, err := d.AllocHost(c.bytes, driver.HostConfig{})
		require.NoError(t, err)
		require.Contains(t, f.callNames(), c.second)
		notes := d.Properties().Notes
		require.Contains(t, notes[len(notes)-1], "refused one way and granted the other")
		require.NoError(t, d.FreeHost(mem))

		f.fail(c.first, outOfMemory)
		f.fail(c.second, outOfMemory)
		_, err = d.AllocHost(c.bytes, driver.HostConfig{})
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
		require.ErrorContains(t, err, "ulimit -l")
		mem, err = d.AllocHost(c.bytes, driver.HostConfig{})
		require.NoError(t, err)
		require.NoError(t, d.FreeHost(mem))
	}
}

func TestRegistering(t *testing.T) {
	f, d := openFake(t, Options{})
	mem := make([]byte, 100)
	require.NoError(t, d.RegisterHost(mem, driver.HostConfig{}))
	p, err := d.HostAddress(mem[10:])
	require.NoError(t, err)
	require.Equal(t, driver.Address(start(mem)+10), p)
	require.ErrorIs(t, d.FreeHost(mem), driver.ErrInvalid, "registered memory is the caller's")
	require.NoError(t, d.UnregisterHost(mem))

	f.fail("cuMemHostRegister_v2", invalidValue)
	err = d.RegisterHost(mem, driver.HostConfig{})
	require.ErrorIs(t, err, driver.ErrInvalid)
	require.ErrorContains(t, err, "a read-only mapping needs ReadOnly")

	// Where a read-only mapping can't be mapped for the device explicitly, it is
	// registered without asking for that.
	f.fail("cuMemHostRegister_v2", invalidValue)
	f.reset()
	require.NoError(t, d.RegisterHost(mem, driver.HostConfig{ReadOnly: true}))
	require.Equal(t, uintptr(hostPortable|hostReadOnly), f.recorded()[len(f.recorded())-1].args[2])
	require.NoError(t, d.UnregisterHost(mem))

	f.fail("cuMemHostRegister_v2", hostAlreadyRegistered)
	require.ErrorContains(t, d.RegisterHost(mem, driver.HostConfig{}), "pinned already")
	require.ErrorIs(t, d.RegisterHost(nil, driver.HostConfig{}), driver.ErrInvalid)
	f.fail("cuMemHostGetDevicePointer_v2", invalidValue)
	_, err = d.HostAddress(mem)
	require.ErrorContains(t, err, "not pinned")
}

// A size that no machine has is a refusal, whatever it rounds up to.
func TestHostMemoryBeyondAnyMachine(t *testing.T) {
	f, d := openFake(t, Options{})
	f.reset()
	for _, bytes := range []int64{math.MaxInt64, math.MaxInt64 - 4095, math.MaxInt64 / 2, mostHost + 1} {
		for _, c := range []driver.HostConfig{{}, {Pageable: true}} {
			_, err := d.AllocHost(bytes, c)
			require.ErrorIs(t, err, driver.ErrOutOfMemory)
		}
	}
	require.Empty(t, f.callNames())
}
