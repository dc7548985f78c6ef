package given_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/cifar"
	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/jsonl"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/records"
	"github.com/leat-go/leat/loader/safetensors"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tar"
	"github.com/leat-go/leat/loader/tfrecord"
	"github.com/leat-go/leat/loader/tokens"
)

// Every format says which package and which of its files is missing, all of them at once.
func TestFiles(t *testing.T) {
	ctx := t.Context()
	fields := []loader.Field{{Name: "n", DType: dtype.Int32}}
	read := func(context.Context, []byte, *loader.Row) error { return nil }
	second := func(_ any, err error) error { return err }
	for pkg, open := range map[string]func(files []source.Source) error{
		"cifar": func(f []source.Source) error { return second(cifar.Open(ctx, f, cifar.Options{})) },
		"csv": func(f []source.Source) error {
			return second(csv.Open(ctx, f, []csv.Column{{Field: fields[0]}}, csv.Options{}))
		},
		"lines":       func(f []source.Source) error { return second(lines.Open(ctx, f, fields, read, lines.Options{})) },
		"npy":         func(f []source.Source) error { return second(npy.Open(ctx, f, npy.Options{})) },
		"records":     func(f []source.Source) error { return second(records.Open(ctx, f, fields, records.Options{})) },
		"safetensors": func(f []source.Source) error { return second(safetensors.Open(ctx, f, safetensors.Options{})) },
		"tar":         func(f []source.Source) error { return second(tar.Open(ctx, f, tar.Options{})) },
		"tfrecord":    func(f []source.Source) error { return second(tfrecord.Open(ctx, f, tfrecord.Options{})) },
		"tokens":      func(f []source.Source) error { return second(tokens.Open(ctx, f, 4, tokens.Options{})) },
	} {
		require.EqualError(t, open(nil), pkg+": files is empty, want one or more")
		require.EqualError(t, open([]source.Source{nil, source.Path("a"), nil}),
			pkg+": files[0] is <nil>, want a Source\n"+pkg+": files[2] is <nil>, want a Source")
		require.ErrorAs(t, open(nil), new(*loader.OptionError))
	}
	for pkg, open := range map[string]func(files []source.Source) error{
		"lines":    func(f []source.Source) error { return lines.NewStream(f, lines.StreamOptions{}).Err() },
		"tar":      func(f []source.Source) error { return tar.NewStream(f, tar.Options{}).Err() },
		"tfrecord": func(f []source.Source) error { return tfrecord.NewStream(f, tfrecord.Options{}).Err() },
	} {
		require.EqualError(t, open(nil), pkg+": files is empty, want one or more")
		require.EqualError(t, open([]source.Source{nil}), pkg+": files[0] is <nil>, want a Source")
	}
	require.ErrorContains(t, second(jsonl.Open(ctx, []source.Source{nil}, fields, jsonl.Options{})), "files[0] is <nil>")
}
