// Sizes builds a program that uses Leat and prints, as a table in Markdown, how large it
// is, whose code is in it, and how many packages initialise something at its start:
//
//	make sizes
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	fmt.Printf("`go build -ldflags='-s -w' ./examples/hello` with CGO_ENABLED=0, %s, %s/%s:\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Println("| program | MB | package inits | modules |")
	fmt.Println("|---|---|---|---|")
	for _, f := range forms {
		b, err := build(f)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sizes:", err)
			os.Exit(1)
		}
		modules := strings.Join(b.modules, ", ")
		if len(b.modules) > 6 {
			modules = fmt.Sprint(len(b.modules))
		}
		fmt.Printf("| %s | %.1f | %d | %s |\n", f.name, float64(b.bytes)/1e6, b.inits, modules)
	}
}
