// Package statefile keeps loader.States in files, so that training goes on where it was
// when its process ended, however that ended.
//
// With one rank, or with several of a Dataset, whose State is the same on all of them, one
// file is enough:
//
//	state, err := statefile.Load("state.json") // fs.ErrNotExist where none was saved
//	err = statefile.Save("state.json", pf.State())
//
// The ranks of a Stream know their own shards only, and each saves its own State behind the
// same steps. One that is killed may have saved a step less than the others, so what is
// resumed is the newest step that all have saved:
//
//	err = statefile.SaveStep("states", step, rank, pf.State())
//	step, state, err := statefile.Newest("states")
//
// A State is of the data alone. Save the model first, and in a file that has the step in its
// name: then a State never tells of a step whose model is missing.
package statefile
