package pack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/pack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tar"
	"github.com/leat-go/leat/loader/tokens"
)

func sample(_ context.Context, i int) (tar.Sample, error) {
	return tar.Sample{Key: fmt.Sprintf("%06d", i), Parts: []tar.Part{
		{Suffix: "cls", Data: fmt.Append(nil, i%3)}, {Suffix: "bin", Data: make([]byte, 100*i)},
	}}, nil
}

var shuffled = pack.Options{Shuffle: true, Seed: 5, Fingerprint: 7}

// contents are the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(b)
	}
	return all
}

// What is packed is read again, each sample once, in an order that was shuffled.
func TestTar(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	index, err := pack.Write(t.Context(), folder, 25, 4, sample, pack.Tar(), shuffled)
	require.NoError(t, err)
	require.Len(t, index.Shards, 7)
	files, err := source.Glob(filepath.ToSlash(folder) + "/*.tar")
	require.NoError(t, err)
	shards, err := tar.Open(t.Context(), files, tar.Options{})
	require.NoError(t, err)
	defer shards.Close()
	require.Equal(t, 25, shards.Len())
	var keys []string
	for i := range 25 {
		s, err := shards.Read(t.Context(), i)
		require.NoError(t, err)
		k, err := strconv.Atoi(s.Key)
		require.NoError(t, err)
		want, _ := sample(t.Context(), k)
		require.Equal(t, want.Parts, s.Parts)
		require.NotContains(t, keys, s.Key)
		keys = append(keys, s.Key)
	}
	require.False(t, slices.IsSorted(keys))
}

// Whatever is left of a call that was killed, the next one ends with the bytes of one that was
// not, for any number of workers; and what is whole is not touched.
func TestKilledAndCalledAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "whole")
	o := shuffled
	o.Workers = 4
	_, err := pack.Write(t.Context(), folder, 35, 4, sample, pack.Tar(), o)
	require.NoError(t, err)
	want := contents(t, folder)
	require.Len(t, want, 9+2)

	folder = filepath.Join(t.TempDir(), "killed")
	stop := errors.New("stop")
	_, err = pack.Write(t.Context(), folder, 35, 4, func(ctx context.Context, i int) (tar.Sample, error) {
		if i == 3 {
			return tar.Sample{}, stop
		}
		return sample(ctx, i)
	}, pack.Tar(), o)
	require.ErrorIs(t, err, stop)
	var at *pack.SampleError
	require.ErrorAs(t, err, &at)
	require.Equal(t, 3, at.Index)
	require.NoDirExists(t, folder)
	building := folder + ".packing"
	// Of the shards that are whole one goes, one loses its sum, and one is damaged.
	o.Workers = 1
	_, err = pack.Write(t.Context(), folder, 35, 4, sample, pack.Tar(), o)
	require.NoError(t, err)
	require.NoError(t, os.Rename(folder, building))
	require.NoError(t, os.Remove(filepath.Join(building, "shards.json")))
	require.NoError(t, os.Remove(filepath.Join(building, "shard-000005.tar")))
	require.NoError(t, os.WriteFile(filepath.Join(building, "shard-000002.tar"), []byte("half"), 0o600))
	read := 0
	index, err := pack.Write(t.Context(), folder, 35, 4, func(ctx context.Context, i int) (tar.Sample, error) {
		read++
		return sample(ctx, i)
	}, pack.Tar(), o)
	require.NoError(t, err)
	require.Equal(t, want, contents(t, folder))
	require.NoDirExists(t, building)
	require.Positive(t, read)

	again, err := pack.Write(t.Context(), folder, 35, 4, func(context.Context, int) (tar.Sample, error) {
		return tar.Sample{}, errors.New("read though all is done")
	}, pack.Tar(), o)
	require.NoError(t, err)
	require.Equal(t, index, again)
	o.Seed++
	_, err = pack.Write(t.Context(), folder, 35, 4, sample, pack.Tar(), o)
	var other *pack.OtherError
	require.ErrorAs(t, err, &other)
	require.Equal(t, want, contents(t, folder))
}

// Shards that are whole are kept in their places; one that is missing between them is written in
// its own.
func TestAGapIsFilledInItsPlace(t *testing.T) {
	o := pack.Options{Workers: 4}
	folder := filepath.Join(t.TempDir(), "whole")
	_, err := pack.Write(t.Context(), folder, 9, 1, sample, pack.Tar(), o)
	require.NoError(t, err)
	want := contents(t, folder)

	gap := filepath.Join(t.TempDir(), "gap")
	stop := errors.New("stop")
	var read [9]int
	o.Workers = 1
	_, err = pack.Write(t.Context(), gap, 9, 1, func(ctx context.Context, i int) (tar.Sample, error) {
		read[i]++
		if i == 8 {
			return tar.Sample{}, stop
		}
		return sample(ctx, i)
	}, pack.Tar(), o)
	require.ErrorIs(t, err, stop)
	require.NoError(t, os.Remove(filepath.Join(gap+".packing", "shard-000004.tar")))
	_, err = pack.Write(t.Context(), gap, 9, 1, func(ctx context.Context, i int) (tar.Sample, error) {
		read[i]++
		return sample(ctx, i)
	}, pack.Tar(), o)
	require.NoError(t, err)
	require.Equal(t, want, contents(t, gap))
	require.Equal(t, [9]int{1, 1, 1, 1, 2, 1, 1, 1, 2}, read)
}

// A function that panics, or that ends its goroutine, is an error that names the sample; what it
// has left is gone on with.
func TestAFunctionThatPanicsOrExits(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	for _, end := range []func(){func() { panic("no such picture") }, runtime.Goexit} {
		_, err := pack.Write(t.Context(), folder, 9, 2, func(ctx context.Context, i int) (tar.Sample, error) {
			if i == 5 {
				end()
			}
			return sample(ctx, i)
		}, pack.Tar(), pack.Options{})
		var at *pack.SampleError
		require.ErrorAs(t, err, &at)
		require.Equal(t, 5, at.Index)
		var panicked *loader.PanicError
		var exited *loader.GoexitError
		require.True(t, errors.As(err, &panicked) || errors.As(err, &exited), "%v", err)
		require.NoDirExists(t, folder)
	}
	_, err := pack.Write(t.Context(), folder, 9, 2, sample, pack.Tar(), pack.Options{})
	require.NoError(t, err)
	require.Len(t, contents(t, folder), 5+2)
}

// A second call is refused while one is writing.
func TestTwoAtOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	_, err := pack.Write(t.Context(), folder, 3, 1, func(ctx context.Context, i int) (tar.Sample, error) {
		if i == 1 {
			_, err := pack.Write(ctx, folder, 3, 1, sample, pack.Tar(), pack.Options{Workers: 1})
			var busy *pack.BusyError
			if !errors.As(err, &busy) && runtime.GOOS == "linux" {
				return tar.Sample{}, fmt.Errorf("got %v, want a BusyError", err)
			}
		}
		return sample(ctx, i)
	}, pack.Tar(), pack.Options{Workers: 1})
	if runtime.GOOS == "linux" { // elsewhere files are not locked
		require.NoError(t, err)
	}
}

// A token that the vocabulary has not ends the call, with its document; nothing is left that
// could be opened. In a wider type it is exact.
func TestTokens(t *testing.T) {
	document := func(_ context.Context, i int) ([]uint32, error) {
		all := []uint32{uint32(i), 7, 8}
		if i == 9 {
			all[2] = 65536
		}
		return all, nil
	}
	folder := filepath.Join(t.TempDir(), "out")
	_, err := pack.Write(t.Context(), folder, 20, 6, document, pack.Tokens(dtype.Uint16, 65500), pack.Options{})
	var at *pack.SampleError
	require.ErrorAs(t, err, &at)
	require.Equal(t, 9, at.Index)
	var token *pack.TokenError
	require.ErrorAs(t, err, &token)
	require.Equal(t, pack.TokenError{Token: 65536, Position: 2, Vocabulary: 65500}, *token)
	require.NoDirExists(t, folder)

	folder = filepath.Join(t.TempDir(), "wide")
	_, err = pack.Write(t.Context(), folder, 20, 20, document, pack.Tokens(dtype.Uint32, 65537), pack.Options{})
	require.NoError(t, err)
	files, err := source.Glob(filepath.ToSlash(folder) + "/*.bin")
	require.NoError(t, err)
	data, err := tokens.Open(t.Context(), files, 59, tokens.Options{})
	require.NoError(t, err)
	defer data.Close()
	require.EqualValues(t, 60, data.Tokens())
	scratch, err := loader.NewScratch(data.Fields())
	require.NoError(t, err)
	row := scratch.Begin(new(loader.Row))
	require.NoError(t, data.Read(t.Context(), 0, row))
	require.Equal(t, []uint32{8, 7, 8, 9, 7, 65536}, loader.Value[uint32](row, "tokens")[24:30])
}

func TestWriteRefuses(t *testing.T) {
	folder := t.TempDir()
	_, err := pack.Write(t.Context(), folder, 0, 0, sample, pack.Tar(), pack.Options{Workers: -1})
	for _, mistake := range []string{"n", "perShard", "Workers"} {
		require.ErrorContains(t, err, mistake)
	}
	_, err = pack.Write(t.Context(), folder, 1, 1, sample, pack.Tar(), pack.Options{})
	require.ErrorContains(t, err, "not made by this package")
	_, err = pack.Write(t.Context(), folder+"/a", 1, 1, func(context.Context, int) ([]uint32, error) { return nil, nil }, pack.Tokens(dtype.Int8, 9), pack.Options{})
	require.ErrorContains(t, err, "want uint16 or uint32")
	_, err = pack.Write(t.Context(), folder+"/b", 1, 1, func(context.Context, int) (tar.Sample, error) { return tar.Sample{}, nil }, pack.Tar(), pack.Options{})
	require.ErrorContains(t, err, "a key and parts")
}
