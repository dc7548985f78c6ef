// Package invariants says whether the costly checks are compiled in: build with
// -tags invariants. The cheap ones are always on and don't ask.
package invariants
