// Package ranks tells what each rank of a program reads where a model is split over several:
// a Mesh names the axes of the grid that the ranks form, and a Piece is a rank's part of a
// sequence. It computes numbers only; where every rank has a batch of its own,
// loader.Options.Shard is all that is needed.
package ranks
