// Package npy has the samples of arrays that NumPy has saved: .npy files and .npz archives.
// The first dimension of an array counts the samples.
//
//	files, err := source.Glob("train/images-*.npy")
//	images, err := npy.Open(ctx, files, npy.Options{Name: "image"})
//	defer images.Close()
//
// Several .npy files with a field each are put side by side by compose.Zip. An .npz archive
// has several arrays, and each is a field by its own name.
//
// Any number of goroutines read samples in any order. Nothing is held in memory but what
// can't be read row by row: arrays in Fortran order, and those that are compressed.
//
// # The format
//
// It is that of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html in its
// versions 1, 2 and 3: all that NumPy has written since 2007, including the headers of
// Python 2 (3L) and those with np.int64(3). An archive's arrays are stored or deflated,
// with 64-bit sizes or without.
//
// Elements are bool, integers, float16, float32 and float64, of either order of bytes; in a
// batch they are little-endian. All else is refused: objects, which are pickled programs,
// structures, text, dates and complex numbers. NumPy does not save what type the elements of
// package ml_dtypes have, only their width: see Options.Void.
package npy
