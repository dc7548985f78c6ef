package cpu_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

func opener(o cpu.Options) func(t *testing.T) *device.Device {
	return func(t *testing.T) *device.Device {
		dev, err := cpu.Open(o)
		require.NoError(t, err)
		return dev
	}
}

func TestConformance(t *testing.T) {
	h200, consumer := cpu.H200(), cpu.PCIe4Consumer()
	adversary := &cpu.Adversary{
		Seed: 1, Poison: true, LateRead: true, CheckInputs: true, Delay: 200 * time.Microsecond, Reorder: true,
	}
	for name, c := range map[string]struct {
		options cpu.Options
		bubble  bool
	}{
		"plain":                          {},
		"plain, in a bubble":             {bubble: true},
		"adversary":                      {options: cpu.Options{Adversary: adversary}, bubble: true},
		"adversary that reads early":     {options: cpu.Options{Adversary: &cpu.Adversary{Seed: 2, Delay: 50 * time.Microsecond}}, bubble: true},
		"model that takes no time":       {options: cpu.Options{Model: &cpu.Model{}}, bubble: true},
		"model of an H200":               {options: cpu.Options{Model: &h200}, bubble: true},
		"model of an H200, in real time": {options: cpu.Options{Model: &h200}},
		"model of a consumer card":       {options: cpu.Options{Model: &consumer}, bubble: true},
		"model and adversary":            {options: cpu.Options{Model: &consumer, Adversary: adversary}, bubble: true},
	} {
		t.Run(name, func(t *testing.T) {
			second := c.options
			second.Index = 1
			devicetest.Run(t, opener(c.options), devicetest.Options{Bubble: c.bubble, Peer: opener(second)})
		})
	}
}
