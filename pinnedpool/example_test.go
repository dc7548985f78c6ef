package pinnedpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/pinnedpool"
)

// A ring of two buffers uploads five messages: each buffer is refilled when its
// last copy is done, and not before.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stream, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	pool, err := pinnedpool.New(dev, 2, 4, pinnedpool.Options{})
	if err != nil {
		log.Fatal(err)
	}
	memory, err := dev.Alloc(5 * 4)
	if err != nil {
		log.Fatal(err)
	}
	for i := range int64(5) {
		b, err := pool.Get(ctx)
		if err != nil {
			log.Fatal(err)
		}
		copy(b.Bytes(), fmt.Sprintf("no %d", i))
		if err := stream.CopyH2D(memory.View().Slice(4*i, 4), b.Bytes()); err != nil {
			log.Fatal(err)
		}
		if err := stream.Record(b.Copied()); err != nil {
			log.Fatal(err)
		}
		pool.PutAfter(b) // free again when the copy is done
	}
	got := make([]byte, 5*4)
	err = errors.Join(stream.CopyD2H(got, memory.View()), stream.Synchronize(ctx), pool.Close(ctx))
	fmt.Printf("%s %v\n", got, err)
	// Output: no 0no 1no 2no 3no 4 <nil>
}

// Where memory is short the error says what was to be had, and MinSlots says how
// little would do.
func ExampleMemoryError() {
	dev, err := cpu.Open(cpu.Options{PinnedBytes: 3 << 20})
	if err != nil {
		log.Fatal(err)
	}
	_, err = pinnedpool.New(dev, 8, 1<<20, pinnedpool.Options{})
	var memory *pinnedpool.MemoryError
	if errors.As(err, &memory) {
		fmt.Printf("%d slots asked for, memory for %d\n", memory.Slots, memory.GotBytes/memory.SlotBytes)
	}
	pool, err := pinnedpool.New(dev, 8, 1<<20, pinnedpool.Options{MinSlots: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pool.Slots(), "slots")
	// Output:
	// 8 slots asked for, memory for 3
	// 3 slots
}
