package capture

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// Equal work on batches in two places is equal when it is normal; work on other memory,
// though it begins where a batch ends, is what it is; and a scalar is not an address for
// being small.
func TestNormalNodes(t *testing.T) {
	at := func(base device.Address) ([]device.Node, []place) {
		places := []place{{addr: base, extent: extent{bytes: 96}}, {addr: base + 96}, {addr: base + 128, extent: extent{bytes: 128}}, {addr: base + 256}}
		word := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
		structure := append(word(7), word(uint64(base)+128)...)
		return []device.Node{
			{Kind: device.KernelNode, Kernel: "k", Args: [][]byte{word(uint64(base)), word(uint64(base) + 255), word(uint64(base) + 256), structure, word(0x9000), word(5), {1, 2, 3, 4}}},
			{Kind: device.CopyNode, Op: "CopyD2D", Dst: 0x9000, Src: base + 8, Bytes: 8},
		}, places
	}
	a, ofA := at(0x4000)
	b, ofB := at(0x8000)
	require.Empty(t, driver.Compare(normal(a, ofA), normal(b, ofB)))
	require.NotEmpty(t, driver.Compare(a, b))
	again, _ := at(0x4000)
	require.Equal(t, again, a, "what is given stays")

	// 0x8100 begins where b ends, and is the weights' address, say.
	ofA[3].addr, ofB[3].addr = 0x1, 0x2
	weights := binary.LittleEndian.AppendUint64(nil, 0x8100)
	a[0].Args[2], b[0].Args[2] = weights, weights
	require.Empty(t, driver.Compare(normal(a, ofA), normal(b, ofB)))

	for _, other := range []uint64{0x4000 + 1, 0x8000 - 1, 0x8100} {
		b[0].Args[0] = binary.LittleEndian.AppendUint64(nil, other)
		require.NotEmpty(t, driver.Compare(normal(a, ofA), normal(b, ofB)), "%#x", other)
	}
}
