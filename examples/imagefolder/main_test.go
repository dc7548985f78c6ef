package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program learns the shapes that it draws, and says what each stage took.
func TestShapesAreLearnt(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-device", "cpu", "-epochs", "4", "-size", "16"}, &out))
	text := out.String()
	require.Contains(t, text, "180 pictures of 3 classes, decoded by Go's standard decoders\n  0 disc: 60\n  1 ring: 60\n  2 stripe: 60\n")
	right := regexp.MustCompile(`loss [\d.]+, (\d+)% right`).FindAllStringSubmatch(text, -1)
	require.Len(t, right, 4)
	last, err := strconv.Atoi(right[3][1])
	require.NoError(t, err)
	require.Greater(t, last, 60, text)
	require.Regexp(t, `(?s)workers: .* for 720 pictures\n  decoding +\d+%\n  scaling +\d+%\n  opening, reading and packing +\d+%\ntraining loop: .*\n  submitting steps +\d+%\n  waiting for pictures +\d+%`, text)
}

// The same seed gives the same losses, whatever the workers.
func TestTheSameLosses(t *testing.T) {
	losses := func(workers string) []string {
		var out strings.Builder
		require.NoError(t, run(t.Context(), []string{"-device", "cpu", "-epochs", "2", "-size", "8", "-workers", workers}, &out))
		return regexp.MustCompile(`loss [\d.]+`).FindAllString(out.String(), -1)
	}
	require.Equal(t, losses("1"), losses("4"))
}

func TestMistakes(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), []string{"x"}, &out), `unexpected argument "x"`)
	require.ErrorContains(t, run(t.Context(), []string{"-epochs", "0"}, &out), "-epochs is 0")
	require.ErrorContains(t, run(t.Context(), []string{"-folder", t.TempDir()}, &out), "has no folders in it")
}
