package loader_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// sentenceShards is the same samples as a stream: sample i is in shard i modulo 3. What
// fails reads as an error of encode.
type sentenceShards struct{ *sentences }

func (s sentenceShards) Shards() int { return 3 }

func (s sentenceShards) Open(_ context.Context, _ loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	return &sentenceReader{s.sentences, shard}, nil // these tests begin at the beginning
}

type sentenceReader struct {
	*sentences
	next int
}

func (r *sentenceReader) Next(context.Context) (loader.Encoder, bool, error) {
	i := r.next
	r.next += 3
	return oneSentence{r.sentences, i}, i < len(r.samples), nil
}

func (r *sentenceReader) AppendMark(dst []byte) ([]byte, error) { return dst, loader.ErrNoMark }
func (r *sentenceReader) Close() error                          { return nil }

type oneSentence struct {
	*sentences
	index int
}

func (o oneSentence) Encode(ctx context.Context, row *loader.Row) error {
	return o.Read(ctx, o.index, row)
}

// A stream's ragged samples keep their lengths, whether rows are encoded in their place or,
// because samples may be left out, before.
func TestRaggedSamplesOfAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSentences(t)
		o := loader.Options{Epochs: 1, Workers: 2}
		if rapid.Bool().Draw(t, "skip") {
			o.OnError = loader.SkipFailed
			s.fails = func(i int) bool { return i%4 == 3 }
		}
		l, err := loader.NewStream(sentenceShards{s}, rapid.IntRange(1, 9).Draw(t, "batch"), o)
		require.NoError(t, err)
		s.checkAll(t, l)
	})
}
