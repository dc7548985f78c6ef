package stream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/stream"
)

func TestJSON(t *testing.T) {
	type text struct {
		Text string `json:"text"`
	}
	s := stream.JSON[text](stream.Lines(files(`{"text":"to be"}`+"\n\n  \n"+`{"text":`+"\n"+`{"text":"or not"}`), stream.LinesOptions{}))
	events := read(t, s, pass, 0)
	require.Len(t, events, 3)
	require.Equal(t, "to be", events[0].item.Value.Text)
	require.EqualError(t, events[1].err, "a, line 4 at offset 21: unexpected end of JSON input, at byte 8, near `{\"text\":`")
	require.False(t, errors.Is(events[1].err, io.EOF))
	require.Equal(t, "or not", events[2].item.Value.Text)
}

// A mistake in a long line is shown with a little of what is around it, and nothing else.
func TestAMistakeInALongLineIsShown(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for name, c := range map[string]struct {
		line       string
		byte       int
		near, says string
	}{
		"in the middle": {`{"Text":"` + long + `","When":x,"Other":"` + long + `"}`, 100_019, `aaaaaaaaaaaaaa","When":x,"Other":"aaaaaaaaaaaaaa`, "invalid character 'x'"},
		"at its end":    {`{"Text":"` + long, 100_009, long[:24], "unexpected end"},
		"its type":      {`{"Text":7}`, 9, `{"Text":7}`, "cannot unmarshal number"},
		"no place":      {`{"When":"` + long + `"}`, 0, `{"When":"aaaaaaaaaaaaaaa`, "parsing time"},
		"bytes":         {"\xff\xfe", 1, "\xff\xfe", "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stream.JSON[struct {
				Text string
				When time.Time
			}](stream.Lines(files(c.line), stream.LinesOptions{}))
			events := read(t, s, pass, 0)
			var wrong *stream.JSONError
			require.ErrorAs(t, events[0].err, &wrong)
			require.Equal(t, c.byte, wrong.Byte)
			require.Equal(t, c.near, wrong.Near)
			require.ErrorContains(t, wrong, c.says)
			require.True(t, name == "no place" || len(wrong.Error()) < 200, wrong)
		})
	}
}
