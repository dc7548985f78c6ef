package source_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/leat-go/leat/loader/source"
)

// Files by a pattern, and the first bytes of each.
func ExampleGlobFS() {
	files := fstest.MapFS{ // or os.DirFS, an embed.FS, a *zip.Reader
		"train-00.txt": {Data: []byte("first shard")},
		"train-01.txt": {Data: []byte("second shard")},
		"notes.md":     {Data: []byte("about them")},
	}
	shards, err := source.GlobFS(files, "train-{00..01}.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, shard := range shards {
		f, err := shard.Open(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		begin := make([]byte, 5)
		err = source.ReadFull(ctx, f, begin, 0)
		fmt.Println(shard.Name(), f.Size(), string(begin), err, f.Close())
	}
	_, err = source.GlobFS(files, "train-{00..02}.txt")
	fmt.Println(err)
	// Output:
	// train-00.txt 11 first <nil> <nil>
	// train-01.txt 12 secon <nil> <nil>
	// source: pattern "train-{00..02}.txt": no file matches 1 of its 3 names, train-02.txt: file does not exist
}

// The names of objects in a store, which no folder lists.
func ExampleExpand() {
	names, err := source.Expand("s3://bucket/{train,val}-{08..10}.tar")
	fmt.Println(len(names), names[:3], err)
	_, err = source.Expand("s3://bucket/train-{1..1000000000}.tar")
	fmt.Println(err)
	// Output:
	// 6 [s3://bucket/train-08.tar s3://bucket/train-09.tar s3://bucket/train-10.tar] <nil>
	// source: pattern "s3://bucket/train-{1..1000000000}.tar": at byte 19: syntax error in pattern: it stands for more than 1048576 names
}

// Two parts of a file, of about as many bytes, have each line once.
func ExampleReader() {
	ctx := context.Background()
	f, err := source.FS(fstest.MapFS{"poem": {Data: []byte("one\ntwo\nthree\nfour\n")}}, "poem").Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	r := source.NewReader(f, 0, source.Options{})
	for part := range int64(2) {
		lo, hi := part*f.Size()/2, (part+1)*f.Size()/2
		if err := r.SeekLine(ctx, lo); err != nil {
			fmt.Println(err)
		}
		for r.Offset() < hi {
			at := r.Offset()
			line, err := r.Line(ctx)
			fmt.Println(part, at, string(line), err)
		}
	}
	// Output:
	// 0 0 one <nil>
	// 0 4 two <nil>
	// 0 8 three <nil>
	// 1 14 four <nil>
}

// A thousand Files are read, of which 10 are open.
func ExamplePool() {
	ctx := context.Background()
	files := fstest.MapFS{}
	for i := range 1000 {
		files[fmt.Sprintf("%03d.txt", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "file %d", i)}
	}
	sources, err := source.GlobFS(files, "*.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := source.NewPool(10)
	var opened []source.File
	for _, s := range sources {
		f, err := pool.Source(s).Open(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer f.Close()
		opened = append(opened, f)
	}
	text := make([]byte, 8)
	err = source.ReadFull(ctx, opened[123], text, 0)
	fmt.Println(string(text), err, pool.Open())
	// Output:
	// file 123 <nil> 10
}
