package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntryPointsOfOddText(t *testing.T) {
	for _, test := range []struct {
		ptx  string
		want map[string][]uint8
	}{
		{"", map[string][]uint8{}},
		{".visible .entry k(\n\t.param .u64 k_param_0,\n\t.param .u32 k_param_1\n)\n{ ret; }", map[string][]uint8{"k": {8, 4}}},
		{".entry a()\n{}\n.visible .entry b{ ret; }\n.entry c .maxntid 128, 1, 1 { }", map[string][]uint8{"a": {}, "b": {}, "c": {}}},
		{".entry _Z1kPf (.param .align 8 .b8 x[24], .param .f32 y, .param .u8 z, .param .align 4 .u64 w)", map[string][]uint8{"_Z1kPf": {0, 4, 0, 8}}},
		{".entry k(.param .u64 .ptr .global .align 16 p)", map[string][]uint8{"k": {8}}},
		{"// .entry no(\n/* .entry\nnever( */ .entry yes(.param .s32 /* signed, */ n // .param .u64 m\n)", map[string][]uint8{"yes": {4}}},
		{".entry k$1%(.param .b64 n) // the end", map[string][]uint8{"k$1%": {8}}},
		{".entrypoint k() /* open", map[string][]uint8{}},
		{".entry", map[string][]uint8{}},
		{".entry ", map[string][]uint8{}},
	} {
		require.Equal(t, test.want, entryPoints(test.ptx), test.ptx)
	}
}
