package loader

import "math/bits"

// taken is the number of samples in the epochs before one, where each has a fixed number of
// steps, or the most that there can be if that is too small.
func (p *plan) taken(epoch int) (samples int64) {
	high, low := bits.Mul64(uint64(epoch), uint64(p.fixed))
	if high != 0 || low > maxSamples {
		return maxSamples
	}
	size, sizes := p.batch, p.sizes
	for left := int64(low); left > 0; {
		for len(sizes) > 0 && sizes[0].Sample <= samples {
			size, sizes = int64(sizes[0].BatchSize), sizes[1:]
		}
		global, steps := size*p.ranks, left
		if len(sizes) > 0 {
			steps = min(steps, (sizes[0].Sample-samples-1)/global+1)
		}
		if steps > (maxSamples-samples)/global {
			return maxSamples
		}
		samples += steps * global
		left -= steps
	}
	return samples
}

// length is the number of samples in an epoch, those included that are jumped over; as many
// as there can be if nobody knows.
func (p *plan) length(epoch int) int64 {
	if p.fixed == 0 {
		return p.samples
	}
	return p.taken(epoch+1) - p.taken(epoch)
}

// rest is the number of steps of a Stream from a place to the end of its epoch: more than
// there will ever be where nobody knows. All are full: where a step doesn't end with the
// epoch, since another batch size got there, it reaches beyond.
func (p *plan) rest(at Cursor) (steps int64) {
	if p.fixed == 0 {
		return maxSamples
	}
	for end := p.length(at.Epoch); ; {
		at.Position = p.jump(at)
		if at.Position >= end {
			return steps
		}
		global := p.size(at.Epoch, at.Position) * p.ranks
		until := min(p.resized(at.Epoch, at.Position), p.jumps(at.Epoch, at.Position), end)
		n := (until-at.Position-1)/global + 1
		steps += n
		at.Position += n * global
	}
}
