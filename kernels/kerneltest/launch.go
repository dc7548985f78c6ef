package kerneltest

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// checked refuses launches that the kernel's PTX would not take.
type checked struct {
	driver.Device

	mu         sync.Mutex
	parameters map[*device.Kernel][]int // sizes in bytes
}

func (c *checked) Launch(s driver.Stream, l *driver.Launch) error {
	if err := c.check(l); err != nil {
		return &driver.Error{Op: "Launch", Device: "kerneltest", Err: err}
	}
	return c.Device.Launch(s, l)
}

func (c *checked) check(l *driver.Launch) error {
	k := l.Kernel
	want, err := c.sizes(k)
	if err != nil {
		return err
	}
	if l.Args.Len() != len(want) {
		return fmt.Errorf("%s is given %d arguments, its PTX has %d parameters", k.Name, l.Args.Len(), len(want))
	}
	for i, size := range want {
		if a := l.Args.Arg(i); int(a.Size) != size {
			return fmt.Errorf("%s: argument %d has %d bytes, its PTX parameter %d", k.Name, i, a.Size, size)
		}
	}
	for _, dim := range [...][3]uint32{l.Grid, l.Block} {
		if dim[0] == 0 || dim[1] == 0 || dim[2] == 0 || dim[1] > 65535 || dim[2] > 65535 {
			return fmt.Errorf("%s: grid %v of blocks %v", k.Name, l.Grid, l.Block)
		}
	}
	if threads := l.Block[0] * l.Block[1] * l.Block[2]; threads > 1024 {
		return fmt.Errorf("%s: %d threads a block, at most 1024", k.Name, threads)
	}
	return nil
}

var parameter = regexp.MustCompile(`\.param\s+\.[a-z](\d+)\s`)

func (c *checked) sizes(k *device.Kernel) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sizes, ok := c.parameters[k]; ok {
		return sizes, nil
	}
	if k.Module == nil {
		return nil, fmt.Errorf("%s has no PTX", k.Name)
	}
	entry := regexp.MustCompile(`\.entry ` + regexp.QuoteMeta(k.Name) + `\(([^)]*)\)`).FindStringSubmatch(k.Module.PTX)
	if entry == nil {
		return nil, fmt.Errorf("%s is not an entry point of module %s", k.Name, k.Module.Name)
	}
	sizes := []int{}
	for _, p := range parameter.FindAllStringSubmatch(entry[1], -1) {
		sizes = append(sizes, map[string]int{"32": 4, "64": 8}[p[1]])
	}
	if c.parameters == nil {
		c.parameters = map[*device.Kernel][]int{}
	}
	c.parameters[k] = sizes
	return sizes, nil
}
