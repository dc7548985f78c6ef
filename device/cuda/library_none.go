//go:build leat_nocuda || !(linux || windows) || !(amd64 || arm64)

package cuda

import "errors"

// Without a library there is no device, so nothing below load is ever called.

func load() (*symbols, error) {
	return nil, errors.New("this program was built without CUDA: tag leat_nocuda, or a system that CUDA does not support")
}

func invoke(uintptr, []uintptr) result { return notInitialised }

func hostFuncEntry() uintptr { return 0 }
