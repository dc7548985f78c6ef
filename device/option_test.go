package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// optionErrors are the mistakes that err holds, in order.
func optionErrors(err error) (all []device.OptionError) {
	switch e := err.(type) {
	case *device.OptionError:
		return []device.OptionError{*e}
	case interface{ Unwrap() error }:
		return optionErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, optionErrors(err)...)
		}
	}
	return all
}

// Every mistake comes at once, typed, in an error that names the call and the device.
func TestBadOptionsAreTyped(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Index: 2})
	require.NoError(t, err)
	defer d.Close()
	for name, c := range map[string]struct {
		call func() error
		want []device.OptionError
	}{
		"Alloc": {
			func() error { _, err := d.Alloc(-1); return err },
			[]device.OptionError{{Option: "bytes", Value: int64(-1), Want: "0 or more"}},
		},
		"AllocHost": {
			func() error {
				_, err := d.AllocHost(-2, device.HostOptions{ReadOnly: true, Locked: true, Pageable: true})
				return err
			},
			[]device.OptionError{
				{Option: "bytes", Value: int64(-2), Want: "0 or more"},
				{Option: "ReadOnly", Value: true, Want: "false: it is for RegisterHost"},
				{Option: "Pageable", Value: true, Want: "false, since Locked is true"},
			},
		},
		"RegisterHost": {
			func() error { _, err := d.RegisterHost(nil, device.HostOptions{Pageable: true}); return err },
			[]device.OptionError{
				{Option: "len(mem)", Value: 0, Want: "1 or more"},
				{Option: "Pageable", Value: true, Want: "false: memory that is not to be locked need not be registered"},
			},
		},
	} {
		err := c.call()
		require.ErrorIs(t, err, device.ErrInvalid, name)
		var e *device.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []string{name, "cpu:2"}, []string{e.Op, e.Device})
		require.Equal(t, c.want, optionErrors(err), name)
	}
	require.Equal(t, device.Usage{}, d.Usage(), "nothing was made")
	require.EqualError(t, &device.OptionError{Option: "UUID", Value: "", Want: "one"}, `UUID is "", want one`)
}
