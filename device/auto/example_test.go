package auto_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
)

// A program takes the device's name from a flag, "" if there is none: the same program
// runs on a laptop and on a GPU.
func ExampleOpen() {
	dev, err := auto.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	fmt.Println(dev.Name())
	for _, note := range dev.Notes() { // which device it is, and why
		fmt.Println(note)
	}

	_, err = auto.Open("tpu")
	fmt.Println(errors.Is(err, device.ErrUnavailable))
	// Output:
	// cpu
	// cpu was asked for
	// true
}
