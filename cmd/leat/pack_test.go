package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What pack writes is what inspect finds, and the bytes are the same for any number of workers.
func TestPack(t *testing.T) {
	read := func(folder string) string {
		b, err := os.ReadFile(filepath.Join(folder, "shards.json")) // with the checksums of all
		require.NoError(t, err)
		return string(b)
	}
	for _, c := range []struct{ to, from, format, more string }{
		{"tar", "../../loader/images/testdata/pets", "tar", "cls int64"},
		{"tokens", "../../cmd/leat/*.go", "tokens", "tokens uint16["},
	} {
		folder := t.TempDir()
		one, many := filepath.Join(folder, "one"), filepath.Join(folder, "many")
		require.Contains(t, output(t, "pack", "-to", c.to, c.from, one, "-samples", "2", "-workers", "1"), "shards")
		output(t, "pack", "-to", c.to, c.from, many, "-samples", "2", "-workers", "5")
		require.Equal(t, read(one), read(many))
		output(t, "pack", "-to", c.to, c.from, many, "-samples", "2") // it is done
		found := output(t, "inspect", one, "-format", c.format, "-stats", "-window", "16")
		require.Contains(t, found, c.more)
		require.Contains(t, found, "problems: none")
	}
	err := run(t.Context(), []string{"pack", "-to", "zip", "x"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "TO is missing")
	require.ErrorContains(t, err, `-to is "zip"`)
}
