// Package safetensors has the samples of tensors in safetensors files, such as features,
// embeddings and latents that a model has computed. The first dimension of a tensor counts the
// samples.
//
//	files, err := source.Glob("latents/*.safetensors")
//	data, err := safetensors.Open(ctx, files, safetensors.Options{Tensors: []string{"latent", "label"}})
//	defer data.Close()
//
// Any number of goroutines read samples in any order, and nothing is held in memory.
//
// # The format
//
// It is that of https://github.com/huggingface/safetensors. What it forbids is refused:
// headers above 100 MB, names that come twice, tensors that overlap, gaps between them, and
// bytes that belong to none.
//
// Element types of eight bits and less that are floats, and complex numbers, are refused where
// such a tensor is taken: Leat has no type for them.
package safetensors
