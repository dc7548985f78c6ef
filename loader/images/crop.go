package images

import (
	"image"
	"math"
	"math/rand/v2"
)

// A Crop chooses the window of a picture of that size that is scaled to the size of to. The
// window is in the coordinates in which the picture is shown, from (0, 0) on; what lies
// outside of the picture is cut off it. random is the sample's own, see loader.Row.Rand. A Crop
// may be called by several goroutines at once.
type Crop func(size, to image.Point, random *rand.Rand) image.Rectangle

// Whole is the whole picture, whose proportions change with those of the field.
func Whole(size, _ image.Point, _ *rand.Rand) image.Rectangle {
	return image.Rectangle{Max: size}
}

// Center is the window in the middle that has the proportions of the field and of the
// largest such window that share of the height and the width: 1 is all of it, and 0.875 what
// is left of 256 pixels when 224 are cut out.
func Center(share float64) Crop {
	return func(size, to image.Point, _ *rand.Rand) image.Rectangle {
		scale := min(float64(size.X)/float64(to.X), float64(size.Y)/float64(to.Y)) * share
		return centered(size, side(scale*float64(to.X), size.X), side(scale*float64(to.Y), size.Y))
	}
}

// Random is a window of random size, proportions and place, as it is usual for training:
// its area is a share of the picture's between leastArea and 1, evenly distributed, and its
// width is between 1/ratio and ratio times its height, evenly in the logarithm. Usual are 0.08 and
// 4.0/3. Where ten draws don't fit the picture, it is the largest window in the middle that
// does. It is the RandomResizedCrop of torchvision, with other random numbers.
func Random(leastArea, ratio float64) Crop {
	most := math.Log(max(ratio, 1/ratio))
	return func(size, _ image.Point, random *rand.Rand) image.Rectangle {
		area := float64(size.X) * float64(size.Y)
		for range 10 {
			part := area * (leastArea + (1-leastArea)*random.Float64())
			proportion := math.Exp(most * (2*random.Float64() - 1))
			width, height := math.Round(math.Sqrt(part*proportion)), math.Round(math.Sqrt(part/proportion))
			if width < 1 || height < 1 || width > float64(size.X) || height > float64(size.Y) {
				continue
			}
			at := image.Pt(random.IntN(size.X-int(width)+1), random.IntN(size.Y-int(height)+1))
			return image.Rectangle{Min: at, Max: at.Add(image.Pt(int(width), int(height)))}
		}
		// Wider or narrower than any window may be: the shorter side decides.
		width, height := float64(size.X), float64(size.Y)
		width, height = min(width, height*math.Exp(most)), min(height, width*math.Exp(most))
		return centered(size, side(width, size.X), side(height, size.Y))
	}
}

// side is a length in whole pixels.
func side(length float64, most int) int {
	return min(max(int(math.Round(length)), 1), most)
}

// centered is the window of that size in the middle.
func centered(size image.Point, width, height int) image.Rectangle {
	at := image.Pt((size.X-width)/2, (size.Y-height)/2)
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(width, height))}
}
