//go:build invariants

package invariants

// Enabled is true in a build with -tags invariants.
const Enabled = true
