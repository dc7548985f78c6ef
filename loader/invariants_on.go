//go:build invariants

package loader

const poisonRows = true
