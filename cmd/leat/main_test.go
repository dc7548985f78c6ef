package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/bench"
	"github.com/leat-go/leat/cmd/leat/internal/probe"
)

var update = flag.Bool("update", false, "write testdata anew")

// output is what a command prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, run(t.Context(), args, &b))
	return b.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestDemo(t *testing.T) {
	for file, args := range map[string][]string{
		"testdata/demo.txt":         {"demo"},
		"testdata/demo-engines.txt": {"demo", "-engines", "1", "-batches", "8"},
		"testdata/demo-depth.txt":   {"demo", "-depth", "2", "-batches", "8", "-h2d", "20us", "-compute", "20us", "-d2h", "20us"},
		"testdata/demo-graph.txt":   {"demo", "-lesson", "graph"},
		"testdata/demo-devices.txt": {"demo", "-lesson", "devices"},
		"testdata/demo-compute.txt": {"demo", "-h2d", "1ms", "-compute", "90ms", "-d2h", "0", "-batches", "4"},
	} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { golden(t, file, output(t, args...)) })
		})
	}
}

func TestDemoReportsAllMistakesAtOnce(t *testing.T) {
	var b bytes.Buffer
	err := run(t.Context(), []string{"demo", "-h2d", "soon", "-compute=-1ms", "-batches", "3,0", "-depth", "-2", "-engines", "7", "-lesson", "gpus", "-nosuch", "more"}, &b)
	for _, mistake := range []string{
		`invalid value "soon" for flag -h2d`, "Compute is -1ms", "Batches[1] is 0", "Depth is -2", "Engines is 7",
		`no lesson "gpus"`, "flag provided but not defined: -nosuch", `unexpected argument "more"`,
	} {
		require.ErrorContains(t, err, mistake)
	}
	require.Empty(t, b.String())
}

func TestHelp(t *testing.T) {
	for _, c := range commands {
		require.Contains(t, output(t), c.name+" ")
		require.Contains(t, output(t, "-h"), c.line)
		require.Contains(t, output(t, c.name, "-h"), "leat "+c.name)
		require.Contains(t, output(t, c.name, "-h"), "Flags:")
	}
}

func TestUnknownCommand(t *testing.T) {
	require.ErrorContains(t, run(context.Background(), []string{"dmeo"}, &bytes.Buffer{}), `"dmeo"`)
}

func TestProbePrintsOneJSONDocument(t *testing.T) {
	var r probe.Report
	printed := output(t, "probe", "-device", "cpu", "-json", "-runs", "1",
		"-max-bytes", "256KiB", "-run-bytes", "1MiB", "-sides", "64", "-pin-bytes", "64KiB", "-bytes", "64kB", "-compute", "100us")
	require.NoError(t, json.Unmarshal([]byte(printed), &r))
	require.Equal(t, "cpu", r.Device.Name)
	require.NotEmpty(t, r.Copies)
	require.Len(t, r.Pipeline.Depths, 4)
	require.NotEmpty(t, r.Advice.Words)
	require.NotZero(t, r.Date)
}

func TestProbeReportsAllMistakesAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"probe", "-bytes", "many", "-compute", "-1ms", "-runs", "-2", "-what"}, &bytes.Buffer{})
	for _, mistake := range []string{`"many"`, "Compute is -1ms", "Runs is -2", "-what"} {
		require.ErrorContains(t, err, mistake)
	}
}

func TestBenchPrintsOneJSONDocument(t *testing.T) {
	var r bench.Report
	printed := output(t, "bench", "-device", "cpu", "-json", "-runs", "1", "-only", "next,pinning")
	require.NoError(t, json.Unmarshal([]byte(printed), &r))
	require.Len(t, r.Targets, 4)
	require.Len(t, r.Skipped, 1)
	require.Positive(t, r.Targets[0].Value)
}

func TestBenchReportsAllMistakesAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"bench", "-only", "all", "-images=-1", "-depth", "deep"}, &bytes.Buffer{})
	for _, mistake := range []string{`"all"`, "Images is -1", `"deep"`} {
		require.ErrorContains(t, err, mistake)
	}
}
