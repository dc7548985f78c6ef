package cpu_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
)

func TestPlain(t *testing.T) {
	b := open(t, cpu.Options{})
	s := b.stream("s")
	for i := range b.host.Bytes() {
		b.host.Bytes()[i] = byte(i)
	}
	out := make([]byte, 256)
	require.NoError(t, s.CopyH2D(b.buf.View(), b.host.Bytes()))
	require.NoError(t, s.CopyD2H(out, b.buf.View()))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, b.host.Bytes(), out)
	require.NoError(t, s.Close())
	b.close(nil, nil)
}
