// Package ranks tells which rank a process has and what each rank reads.
//
//	ShardFromEnv   asks the launcher's variables: torchrun, mpirun, srun, Kubernetes
//	Mesh           names the axes of the grid that the ranks form where a model is split
//	Piece          is a rank's part of a sequence
//
// It computes numbers only; where every rank has a batch of its own, loader.Options.Shard is all
// that is needed.
package ranks
