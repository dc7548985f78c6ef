package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/observe/ui"
)

// A training is watched while it lives, from this machine alone where no host is named.
func TestATrainingIsWatched(t *testing.T) {
	c, err := parse([]string{"-device", "cpu", "-http", ":0"})
	require.NoError(t, err)
	tr, err := newTraining(t.Context(), c)
	require.NoError(t, err)
	url, err := tr.watch(c.http)
	require.NoError(t, err)
	require.Regexp(t, `^http://(127\.0\.0\.1|\[::1\]):\d+/debug/leat/$`, url)
	for batch, err := range tr.pf.Batches(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, tr.learn(batch))
		break
	}
	answer, err := http.Get(url + "report.json")
	require.NoError(t, err)
	defer answer.Body.Close()
	var report ui.Report
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&report))
	require.Len(t, report.Pipelines, 2)
	require.EqualValues(t, 1, report.Pipelines[0].Total.Batches)
	require.NoError(t, tr.close())
	_, err = http.Get(url)
	require.Error(t, err, "it is closed with the training")

	_, err = tr.watch("nowhere")
	require.ErrorContains(t, err, "missing port")
}
