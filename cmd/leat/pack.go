package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/loader/pack"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tar"
)

const aboutPack = `
leat pack FROM TO writes many small files into shards, shuffled once for all, in a new
folder TO, with an index that has the checksum of each shard:

	leat pack -to tar pictures shards            a folder of pictures, a folder a class
	leat pack -to tokens 'corpus/**/*.txt' out   texts, each byte a token, 256 at the end

Killed, it is called again with the same flags and goes on; the bytes are those of a call
that was not, for any number of workers. Pictures are taken as they are. To scale them, or
to cut texts by a tokeniser, call package loader/pack from a program.`

func runPack(ctx context.Context, args []string, out io.Writer) error {
	var o pack.Options
	f := newFlags("pack", aboutPack, out)
	to := f.String("to", "tar", "`format` of the shards: tar or tokens")
	perShard := f.Int("samples", 1000, "`samples` in a shard")
	f.BoolVar(&o.Shuffle, "shuffle", true, "in an order that -seed chooses, not in that of the names")
	f.Uint64Var(&o.Seed, "seed", 1, "`seed` of the order")
	f.IntVar(&o.Workers, "workers", 0, "shards that are written at once; 0 means one for each processor")
	paths, err := parseArgs(f, args, "FROM", "TO")
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	write, known := map[string]func(ctx context.Context, from, to string, perShard int, o pack.Options) (*pack.Index, error){
		"tar": packPictures, "tokens": packTexts,
	}[*to]
	if !known {
		err = errors.Join(err, fmt.Errorf("-to is %q, want tar or tokens", *to))
	}
	if err != nil {
		return err
	}
	index, err := write(ctx, paths[0], paths[1], *perShard, o)
	if err != nil {
		return err
	}
	var bytes uint64
	for _, s := range index.Shards {
		bytes += uint64(s.Bytes)
	}
	_, err = fmt.Fprintf(out, "%s: %s samples in %d shards, %s; checksums are in shards.json\n",
		paths[1], humanize.Comma(int64(index.Samples)), len(index.Shards), humanize.Bytes(bytes))
	return err
}

// packPictures writes the pictures of a folder, with the numbers of their classes.
func packPictures(ctx context.Context, from, to string, perShard int, o pack.Options) (*pack.Index, error) {
	data, err := images.Open(ctx, from, images.Options{})
	if err != nil {
		return nil, err
	}
	o.Fingerprint = data.Fingerprint()
	return pack.Write(ctx, to, data.Len(), perShard, func(_ context.Context, i int) (tar.Sample, error) {
		path := data.Origin(i).File
		b, err := os.ReadFile(path)
		suffix := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
		return tar.Sample{Key: fmt.Sprintf("%09d", i), Parts: []tar.Part{
			{Suffix: suffix, Data: b}, {Suffix: "cls", Data: fmt.Append(nil, data.Label(i))},
		}}, err
	}, pack.Tar(), o)
}

// endOfText is the token behind each text, whose bytes are tokens themselves.
const endOfText = 256

// packTexts writes the files that a pattern matches, or those in a folder.
func packTexts(ctx context.Context, from, to string, perShard int, o pack.Options) (*pack.Index, error) {
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		from = filepath.Join(from, "*")
	}
	files, err := source.Glob(filepath.ToSlash(from))
	if err != nil {
		return nil, err
	}
	if o.Fingerprint, err = source.Fingerprint(ctx, files); err != nil {
		return nil, err
	}
	return pack.Write(ctx, to, len(files), perShard, func(_ context.Context, i int) ([]uint32, error) {
		b, err := os.ReadFile(files[i].Name())
		document := make([]uint32, 0, len(b)+1)
		for _, c := range b {
			document = append(document, uint32(c))
		}
		return append(document, endOfText), err
	}, pack.Tokens(dtype.Uint16, endOfText+1), o)
}
