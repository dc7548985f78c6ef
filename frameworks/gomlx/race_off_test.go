//go:build !race

package gomlx_test

const race = false
