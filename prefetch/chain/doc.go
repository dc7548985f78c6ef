// Package chain makes a prefetch.Transform of operations: Normalize, Crop, Convert and
// OneHot of package kernels, and the user's own. Each changes one field; a field that
// none changes is passed on as it is.
package chain
