package main

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A request is answered when its batch of four is full, or when it has waited as long as it
// may. Nobody is left without an answer, and one that is malformed harms nobody.
func TestNobodyWaitsLongerThanTheLimit(t *testing.T) {
	const wait = 2 * time.Millisecond
	for name, c := range map[string]struct {
		texts   []string
		pause   time.Duration // between them
		longest time.Duration
	}{
		"one":            {texts: []string{"3"}, longest: wait},
		"a full batch":   {texts: []string{"1", "2", "3", "4"}},
		"two and a part": {texts: numbers(10), longest: wait},
		"slowly":         {texts: numbers(5), pause: time.Hour, longest: wait},
		"steadily":       {texts: numbers(50), pause: wait / 4, longest: wait},
		"malformed":      {texts: []string{"1", "x", "2", "y", "z", "3"}, longest: wait},
		"only malformed": {texts: []string{"x", "", "y"}, longest: wait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue, served := make(chan request), make(chan error, 1)
				go func() { served <- serve(t.Context(), queue, wait) }()
				done := make(chan bool)
				for _, text := range c.texts {
					to := make(chan answer, 1)
					queue <- request{text, to}
					go func() {
						began := time.Now()
						got := <-to
						x, err := strconv.ParseFloat(text, 64)
						require.Equal(t, err, got.err)
						require.Equal(t, x*x, got.y)
						require.LessOrEqual(t, time.Since(began), c.longest)
						done <- true
					}()
					time.Sleep(c.pause)
				}
				for range c.texts {
					<-done
				}
				close(queue)
				require.NoError(t, <-served)
			})
		})
	}
}

func numbers(n int) (texts []string) {
	for i := range n {
		texts = append(texts, strconv.Itoa(i))
	}
	return texts
}

func TestTheProgram(t *testing.T) {
	require.NoError(t, run(t.Context()))
}
