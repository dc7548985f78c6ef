package loader_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

var textFields = []loader.Field{
	{Name: "id", DType: dtype.Int64},
	{Name: "tokens", DType: dtype.Uint16, Shape: []int{5, 2}, Ragged: &loader.Ragged{Length: "length"}},
	{Name: "empty", DType: dtype.Uint8, Shape: []int{0}, Ragged: &loader.Ragged{}},
	{Name: "tags", DType: dtype.Uint8, Shape: []int{3}, Ragged: &loader.Ragged{}},
}

// text is a scratch row with a sample of textFields; the tags are put down by Column.
func text(t *testing.T, id int64, tokens []uint16, tags []byte) *loader.Row {
	s, err := loader.NewScratch(textFields)
	require.NoError(t, err)
	row := s.Begin(new(loader.Row))
	require.NoError(t, loader.Write(row, "id", id))
	require.NoError(t, loader.Write(row, "tokens", tokens...))
	copy(row.Bytes("tags"), tags)
	require.NoError(t, row.SetLen("tags", len(tags)))
	require.NoError(t, s.Written())
	return row
}

// wider has the fields in another order, and one more.
func wider(t *testing.T) (*loader.Scratch, *loader.Row) {
	fields := slices.Concat([]loader.Field{{Name: "more", DType: dtype.Uint8}}, textFields[2:], textFields[:2])
	s, err := loader.NewScratch(fields)
	require.NoError(t, err)
	row := s.Begin(new(loader.Row))
	require.NoError(t, loader.Write(row, "more", byte(1)))
	return s, row
}

func requireText(t *testing.T, s *loader.Scratch, row *loader.Row, id int64, tokens []uint16, tags []byte) {
	t.Helper()
	require.NoError(t, s.Written())
	require.Equal(t, []int64{id}, loader.Value[int64](row, "id"))
	require.ElementsMatch(t, tokens, loader.Value[uint16](row, "tokens"))
	require.ElementsMatch(t, tags, loader.Value[byte](row, "tags"))
	require.Empty(t, loader.Value[byte](row, "empty"))
}

func TestASampleIsCopiedToAWiderRow(t *testing.T) {
	for _, tokens := range [][]uint16{nil, {1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		for _, tags := range [][]byte{nil, {7}, {7, 8, 9}} {
			from := text(t, 42, tokens, tags)
			s, to := wider(t)
			to.CopyFrom(from)
			requireText(t, s, to, 42, tokens, tags)

			c, err := loader.NewCodec(textFields)
			require.NoError(t, err)
			b := c.Append([]byte("x"), from)[1:]
			require.Len(t, b, 3*4+8+2*len(tokens)+len(tags))
			require.LessOrEqual(t, len(b), c.Most())
			s, to = wider(t)
			require.NoError(t, c.Load(to, b))
			requireText(t, s, to, 42, tokens, tags)
			require.Equal(t, b, c.Append(nil, to))
		}
	}
}

func TestBytesThatAreNoSampleAreRefused(t *testing.T) {
	c, err := loader.NewCodec(textFields)
	require.NoError(t, err)
	good := c.Append(nil, text(t, 1, []uint16{1, 2}, []byte{3}))
	change := func(at int, b byte) []byte {
		bad := slices.Clone(good)
		bad[at] = b
		return bad
	}
	for name, bad := range map[string][]byte{
		"none": nil, "a part of the lengths": good[:7], "too short": good[:len(good)-1], "too long": append(slices.Clone(good), 0),
		"above the maximum": change(0, 6), "a huge length": change(3, 0xff), "another length": change(0, 2),
	} {
		s, row := wider(t)
		require.ErrorContains(t, c.Load(row, bad), "no sample of id int64", name)
		require.ErrorAs(t, s.Written(), new(*loader.UnwrittenError), name)
	}
	_, err = loader.NewCodec(nil)
	require.ErrorAs(t, err, new(*loader.OptionError))
}

func TestARowWithoutAFieldOfTheCodecIsAMistake(t *testing.T) {
	c, err := loader.NewCodec([]loader.Field{{Name: "other", DType: dtype.Uint8}})
	require.NoError(t, err)
	_, row := wider(t)
	defer func() {
		err, _ := recover().(error)
		var asked *loader.FieldError
		require.True(t, errors.As(err, &asked))
		require.Equal(t, "other", asked.Name)
	}()
	c.Append(nil, row)
}
