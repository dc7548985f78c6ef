package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePictureIsDrawnByThisProgram(t *testing.T) {
	committed, err := os.ReadFile("../../docs/pipeline.svg")
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(committed), "\r\n", "\n"), draw(), "go run ./internal/picture >docs/pipeline.svg")
}
