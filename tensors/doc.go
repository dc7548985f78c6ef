// Package tensors makes [gorgonia.org/tensor] tensors of batches, and datasets of
// tensors. Only programs that import it link package tensor.
//
// [Of] and [Cache.Of] give a field of a batch in host memory as a *tensor.Dense over
// the batch's own memory, without a copy. Such a tensor is borrowed: it, its views and
// its Data are valid as long as the batch is, and show the numbers of later batches
// afterwards. [Clone] makes a tensor that the caller keeps. [Dataset] goes the other
// way, and makes a loader.Dataset of tensors that are in memory.
//
// Element types go by their width: Float16 and BFloat16 come as uint16, their bits.
package tensors
