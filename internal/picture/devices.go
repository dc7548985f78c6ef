package main

import "fmt"

// devices draws docs/several-gpus.svg: how several devices make a step together, and how
// they share batches.
func devices() string {
	c := begin(920, 425)
	together(c)
	shared(c)
	return c.end()
}

// together is the upper half: a part of every batch for each device.
func together(c *canvas) {
	const h = 34
	c.text(20, 28, "start", ink, "Group: a part of every batch for each device")
	c.text(90, 62, "middle", faint, "a batch of 8 rows")
	for i, row := range []int{76, 76 + h + 10} {
		name := fmt.Sprintf("rows %d to %d", 4*i, 4*i+3)
		c.box(20, row, 140, h, read, name)
		c.box(300, row, 110, h, read, "pinned slot")
		c.box(540, row, 110, h, copied, fmt.Sprintf("GPU %d's slot", i))
		c.box(760, row, 140, h, work, fmt.Sprintf("step on GPU %d", i))
		middle := row + h/2
		c.arrow(160, middle, 296, middle, "")
		c.arrow(410, middle, 536, middle, "")
		c.arrow(650, middle, 756, middle, "")
	}
	c.text(228, 62, "middle", faint, "workers, shared")
	c.text(473, 62, "middle", faint, "copy streams")
	c.text(703, 62, "middle", faint, "waits")
	c.text(830, 62, "middle", faint, "one loop body")
}

// shared is the lower half: twelve batches on two devices of which one is half as fast, in
// halves and as a Pool deals them.
func shared(c *canvas) {
	const unit, left, h = 44, 150, 26
	row := func(y int, name string) { c.text(left-12, y+h/2+5, "end", faint, name) }
	// run draws batches that each take so many units, and returns where they end.
	run := func(y, takes int, batches ...int) int {
		x := left
		for _, b := range batches {
			c.box(x, y, takes*unit, h, work, fmt.Sprint(b))
			x += takes * unit
		}
		return x
	}
	done := func(x, y int, text string) {
		c.arrow(x+40, y+h/2, x+4, y+h/2, "")
		c.text(x+48, y+h/2+5, "start", faint, text)
	}
	y := 210
	c.text(20, y-14, "start", ink, "Twelve batches in halves, with GPU 1 half as fast as GPU 0")
	row(y, "GPU 0")
	run(y, 1, 0, 1, 2, 3, 4, 5)
	row(y+h+6, "GPU 1")
	done(run(y+h+6, 2, 6, 7, 8, 9, 10, 11), y+h+6, "done")
	y += 122
	c.text(20, y-14, "start", ink, "Pool: each GPU takes the batch whose turn it is when it is done with it")
	row(y, "GPU 0")
	run(y, 1, 0, 1, 3, 4, 6, 7, 9, 10)
	row(y+h+6, "GPU 1")
	done(run(y+h+6, 2, 2, 5, 8, 11), y+h+6, "done, and the results came in order")
	c.arrow(left, y+2*h+26, left+13*unit, y+2*h+26, "")
	c.text(left+13*unit+8, y+2*h+31, "start", faint, "time")
}
