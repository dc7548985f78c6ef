//go:build !invariants

package loader

const poisonRows = false
