package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// newFlags are the flags of a command whose -h prints about.
func newFlags(name, about string, out io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // parse reports the errors, all at once
	f.Usage = func() {
		fmt.Fprintf(out, "%s\n\nFlags:\n", strings.TrimSpace(about))
		f.SetOutput(out)
		f.PrintDefaults()
		f.SetOutput(io.Discard)
	}
	return f
}

// parse sets f's flags and reports every mistake at once, where f.Parse stops at
// the first. After -h the error is flag.ErrHelp alone.
func parse(f *flag.FlagSet, args []string) error {
	usage := f.Usage
	f.Usage = func() {} // of a mistake
	defer func() { f.Usage = usage }()
	var errs []error
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return flag.ErrHelp
		}
		if err == nil {
			break
		}
		errs = append(errs, err)
		args = f.Args()
	}
	for _, arg := range f.Args() {
		errs = append(errs, fmt.Errorf("unexpected argument %q", arg))
	}
	return errors.Join(errs...)
}

// numbers is a flag of several numbers: 3,10.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

func (n *numbers) Set(s string) error {
	*n = nil
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is not a number", part)
		}
		*n = append(*n, v)
	}
	return nil
}
