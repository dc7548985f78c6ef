package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// Options of cuModuleLoadDataEx.
const (
	jitInfoLogBuffer       = 3
	jitInfoLogBufferBytes  = 4
	jitErrorLogBuffer      = 5
	jitErrorLogBufferBytes = 6
	jitLogBytes            = 16 << 10
)

// A module is a driver.Module compiled by the driver, with all its entry points.
type module struct {
	handle  uintptr
	entries map[string]function
}

// A function is an entry point and the sizes of its parameters in bytes, 0 for one
// that is neither 4 nor 8.
type function struct {
	handle uintptr
	params []uint8
}

// kernels are the modules loaded and the functions that launches have looked up.
type kernels struct {
	mu        sync.RWMutex
	modules   map[*driver.Module]*module
	functions map[*driver.Kernel]function
}

// loadModules loads each module and asks for each of its entry points, which is
// when a driver that loads lazily loads the code.
func (g *group) loadModules(list []*driver.Module) error {
	for _, m := range list {
		if _, err := g.loadModule(m); err != nil {
			return err
		}
	}
	return nil
}

// loadModule compiles m. The caller of a device in use holds kernels.mu.
func (g *group) loadModule(m *driver.Module) (*module, error) {
	handle, err := g.compile(m)
	if err != nil {
		return nil, err
	}
	loaded := &module{handle: handle, entries: make(map[string]function)}
	for name, params := range entryPoints(m.PTX) {
		fn, err := g.getFunction(handle, name)
		if err != nil {
			g.call(g.gpu.cu.moduleUnload, handle)
			return nil, err
		}
		loaded.entries[name] = function{fn, params}
	}
	k := &g.gpu.kernels
	if k.modules == nil {
		k.modules = make(map[*driver.Module]*module)
		k.functions = make(map[*driver.Kernel]function)
	}
	k.modules[m] = loaded
	return loaded, nil
}

func (g *group) compile(m *driver.Module) (uintptr, error) {
	image := append([]byte(m.PTX), 0)
	info, errors := make([]byte, jitLogBytes), make([]byte, jitLogBytes)
	options := []uint32{jitInfoLogBuffer, jitInfoLogBufferBytes, jitErrorLogBuffer, jitErrorLogBufferBytes}
	values := []uintptr{start(info), jitLogBytes, start(errors), jitLogBytes}

	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&image[0])
	pins.Pin(&info[0])
	pins.Pin(&errors[0])
	pins.Pin(&options[0])
	pins.Pin(&values[0])
	r := g.call(g.gpu.cu.moduleLoadDataEx, g.result0(), start(image), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if r == success {
		return g.handle(), nil
	}
	hint := strings.TrimSpace(logText(errors) + "\n" + logText(info))
	if hint == "" {
		hint = causes[r].hint
	}
	err := g.failure(r, foundEarlier)
	if e, ok := err.(*driver.Error); ok && e.Err != driver.ErrFault {
		e.Err, e.Hint = fmt.Errorf("module %q: %w", m.Name, e.Err), hint
	}
	return 0, err
}

// logText is the text in a log buffer, which the driver ends with a zero.
func logText(log []byte) string {
	text, _, _ := strings.Cut(string(log), "\x00")
	return text
}

func (g *group) getFunction(module uintptr, name string) (uintptr, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	text := append([]byte(name), 0)
	pins.Pin(&text[0])
	if r := g.call(g.gpu.cu.moduleGetFunction, g.result0(), module, start(text)); r != success {
		return 0, g.failure(r, foundEarlier)
	}
	return g.handle(), nil
}

// unloadModules is for Close: it ignores what the driver says, which for a module
// of a context about to be released changes nothing.
func (g *group) unloadModules() {
	k := &g.gpu.kernels
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.modules {
		g.call(g.gpu.cu.moduleUnload, m.handle)
	}
	k.modules, k.functions = nil, nil
}

// entryPoints are the names of the kernels in ptx and the sizes of their
// parameters.
func entryPoints(ptx string) map[string][]uint8 {
	entries := make(map[string][]uint8)
	_, rest, found := strings.Cut(withoutComments(ptx), ".entry")
	for ; found; _, rest, found = strings.Cut(rest, ".entry") {
		name := strings.TrimLeft(rest, ptxSpace)
		end := strings.IndexAny(name, ptxSpace+"({.;")
		if end <= 0 || len(name) == len(rest) {
			continue
		}
		params := []uint8{}
		if list, ok := strings.CutPrefix(strings.TrimLeft(name[end:], ptxSpace), "("); ok {
			list, _, _ = strings.Cut(list, ")")
			for param := range strings.SplitSeq(list, ",") {
				if size, ok := paramSize(param); ok {
					params = append(params, size)
				}
			}
		}
		entries[name[:end]] = params
	}
	return entries
}

const ptxSpace = " \t\r\n"

func withoutComments(ptx string) string {
	var text strings.Builder
	for {
		line, block := strings.Index(ptx, "//"), strings.Index(ptx, "/*")
		begin, end, length := line, "\n", 0 // a line's end stays
		if line < 0 || block >= 0 && block < line {
			begin, end, length = block, "*/", 2
		}
		if begin < 0 {
			text.WriteString(ptx)
			return text.String()
		}
		text.WriteString(ptx[:begin])
		n := strings.Index(ptx[begin+2:], end)
		if n < 0 {
			return text.String()
		}
		ptx = ptx[begin+2+n+length:]
	}
}

// paramSize is the size of a parameter as it is declared, ".param .u64 name" or
// ".param .align 8 .b8 name[24]": 0 for one that is neither of 4 nor of 8 bytes.
func paramSize(param string) (size uint8, ok bool) {
	words := strings.Fields(param)
	if len(words) > 2 && words[1] == ".align" {
		words = slices.Delete(words, 1, 3)
	}
	if len(words) < 2 || words[0] != ".param" {
		return 0, false
	}
	switch bits := strings.TrimLeft(words[1], ".abcdefghijklmnopqrstuvwxyz"); {
	case strings.Contains(param, "["): // an array
		return 0, true
	case bits == "32":
		return 4, true
	case bits == "64":
		return 8, true
	}
	return 0, true
}
