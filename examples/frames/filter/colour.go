package filter

import (
	"math"

	"github.com/leat-go/leat/device"
)

// gamma brightens the shadows: a table from byte to byte.
func gamma(exponent float64) (table [256]byte) {
	for v := range table {
		table[v] = byte(math.Round(255 * math.Pow(float64(v)/255, 1/exponent)))
	}
	return table
}

var ycbcr = &device.Kernel{Name: "ycbcr", Module: module, Go: ycbcrGo}

// colour submits gamma and the change of colour space. The coefficients are JPEG's,
// in units of 1/65536.
func (f *Filter) colour(s *device.Stream, out Planes, in device.View) error {
	l := device.Launch{Kernel: ycbcr}
	perRow(&l, f.options.Height)
	for _, plane := range out {
		plane.Out(&l.Args)
	}
	in.In(&l.Args)
	f.gamma.View().In(&l.Args)
	l.Args.AddInt32(int32(f.options.Width))
	l.Args.AddInt32(int32(f.options.Height))
	return s.Launch(&l)
}

func ycbcrGo(a *device.Args) {
	luma, blue, red, in, table := a.Bytes(0), a.Bytes(1), a.Bytes(2), a.Bytes(3), (*[256]byte)(a.Bytes(4))
	blue, red, in = blue[:len(luma)], red[:len(luma)], in[:channels*len(luma)]
	for i := range luma {
		r, g, b := int32(table[in[channels*i]]), int32(table[in[channels*i+1]]), int32(table[in[channels*i+2]])
		luma[i] = uint8((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
		blue[i] = uint8(min((-11056*r-21712*g+32768*b+257<<15)>>16, 255))
		red[i] = uint8(min((32768*r-27440*g-5328*b+257<<15)>>16, 255))
	}
}
