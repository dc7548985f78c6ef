package compose_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// opened is a dataset that is closed.
type opened struct {
	loader.Dataset
	name string
	log  *[]string
	err  error
}

func (o *opened) Close() error {
	*o.log = append(*o.log, o.name)
	if o.name == "panics" {
		panic(o.err)
	}
	return o.err
}

// plain can't be compared.
type plain struct {
	loader.Dataset
	_ []int
}

func (plain) Close() error { return nil }

func TestCloseClosesEverythingOnce(t *testing.T) {
	var log []string
	bad, worse := errors.New("bad"), errors.New("worse")
	a := &opened{values(1, 2, 3, 4), "a", &log, bad}
	b := &opened{values(5, 6), "b", &log, nil}
	panics := &opened{values(7), "panics", &log, worse}
	cache, err := compose.CacheFile(a, filepath.Join(t.TempDir(), "cache"), "1")
	require.NoError(t, err)
	contents(t, must(compose.Take(cache, 1)), 1)
	parts, err := compose.SplitN(cache, 1, 2, 2)
	require.NoError(t, err)
	whole := must(compose.Concat(parts[0], b, must(compose.Repeat(b, 2)), panics, plain{Dataset: values(8)}))
	err = compose.Close(whole, parts[1], nil, b)
	require.ElementsMatch(t, []string{"a", "b", "panics"}, log)
	require.ErrorIs(t, err, bad)
	require.ErrorIs(t, err, worse)
	require.ErrorAs(t, err, new(*loader.PanicError))
	require.Error(t, cache.Build(t.Context()), "the cache is closed")
	require.NoError(t, compose.Close())
}
