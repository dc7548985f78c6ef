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
