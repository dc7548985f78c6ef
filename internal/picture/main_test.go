package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePicturesAreDrawnByThisProgram(t *testing.T) {
	for name, draw := range pictures {
		committed, err := os.ReadFile("../../docs/" + name + ".svg")
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(string(committed), "\r\n", "\n"), draw(), "go run ./internal/picture %s >docs/%[1]s.svg", name)
	}
}
