// Package docs holds the tests of README.md, CONTRIBUTING.md and the pages in docs: their
// programs run, their commands and names exist.
//
// A block of Go in a page is one of these:
//
//   - a whole program, beginning with "package main". It is built in a module of its own
//     and run, on the GPU if there is one. The next block, marked <!-- output -->, is what
//     it prints. Files of testdata/PAGE lie beside it.
//   - a part, marked <!-- from FILE -->: it stands in that file of the repository, which
//     is compiled and run by tests, word for word, apart from its indentation.
//   - a part, marked <!-- from the program --> of this page.
//
// A command marked <!-- makes FILE --> makes that file of testdata/PAGE.
package docs
