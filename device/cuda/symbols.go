package cuda

import (
	"fmt"
	"strings"
)

// symbols are the addresses of the driver's functions, 0 where a driver lacks one.
type symbols struct {
	initialise       uintptr
	driverGetVersion uintptr
	getErrorName     uintptr

	deviceGetCount        uintptr
	deviceGet             uintptr
	deviceGetName         uintptr
	deviceGetUUID         uintptr
	deviceTotalMem        uintptr
	deviceGetAttribute    uintptr
	deviceGetPCIBusID     uintptr
	deviceCanAccessPeer   uintptr
	deviceGetP2PAttribute uintptr

	primaryCtxRetain     uintptr
	primaryCtxRelease    uintptr
	ctxPushCurrent       uintptr
	ctxPopCurrent        uintptr
	ctxSynchronize       uintptr
	ctxGetPriorityRange  uintptr
	ctxEnablePeerAccess  uintptr
	ctxDisablePeerAccess uintptr

	streamCreate      uintptr
	streamDestroy     uintptr
	streamQuery       uintptr
	streamSynchronize uintptr
	streamWaitEvent   uintptr
	streamGetCtx      uintptr

	eventCreate      uintptr
	eventDestroy     uintptr
	eventRecord      uintptr
	eventQuery       uintptr
	eventSynchronize uintptr
	eventElapsedTime uintptr

	memGetInfo              uintptr
	memAlloc                uintptr
	memFree                 uintptr
	memHostAlloc            uintptr
	memFreeHost             uintptr
	memHostRegister         uintptr
	memHostUnregister       uintptr
	memHostGetDevicePointer uintptr
	memcpyHtoDAsync         uintptr
	memcpyDtoHAsync         uintptr
	memcpyDtoDAsync         uintptr
	memcpyPeerAsync         uintptr
	memsetD8Async           uintptr

	moduleLoadDataEx  uintptr
	moduleUnload      uintptr
	moduleGetFunction uintptr
	launchKernel      uintptr
	launchHostFunc    uintptr

	streamBeginCapture       uintptr
	streamEndCapture         uintptr
	streamIsCapturing        uintptr
	graphGetNodes            uintptr
	graphNodeGetType         uintptr
	graphNodeGetDependencies uintptr
	graphKernelNodeGetParams uintptr
	graphMemcpyNodeGetParams uintptr
	graphMemsetNodeGetParams uintptr
	graphHostNodeGetParams   uintptr
	graphDestroy             uintptr
	graphInstantiate         uintptr
	graphExecUpdate          uintptr
	graphExecDestroy         uintptr
	graphLaunch              uintptr
	funcGetName              uintptr
	funcGetParamInfo         uintptr
	kernelGetName            uintptr
	kernelGetParamInfo       uintptr
}

// required marks a symbol without which there is no device, withoutGraphs one without
// which that has no graphs.
const (
	required      = ""
	withoutGraphs = "there are no graphs"
)

// symbol is one function of the driver API: the name that the library exports,
// which for calls whose types have changed ends in a version, and what a driver
// without it can't do.
type symbol struct {
	name    string
	address *uintptr
	without string
}

func (s *symbols) table() []symbol {
	return []symbol{
		{"cuInit", &s.initialise, required},
		{"cuDriverGetVersion", &s.driverGetVersion, required},
		{"cuGetErrorName", &s.getErrorName, "errors have a code and no name"},

		{"cuDeviceGetCount", &s.deviceGetCount, required},
		{"cuDeviceGet", &s.deviceGet, required},
		{"cuDeviceGetName", &s.deviceGetName, required},
		{"cuDeviceGetUuid_v2", &s.deviceGetUUID, "the UUID is unknown"},
		{"cuDeviceTotalMem_v2", &s.deviceTotalMem, required},
		{"cuDeviceGetAttribute", &s.deviceGetAttribute, required},
		{"cuDeviceGetPCIBusId", &s.deviceGetPCIBusID, "the bus address is unknown"},
		{"cuDeviceGetP2PAttribute", &s.deviceGetP2PAttribute, "the ways between GPUs are not told apart"},
		{"cuDeviceCanAccessPeer", &s.deviceCanAccessPeer, "copies between GPUs go through host memory"},

		{"cuDevicePrimaryCtxRetain", &s.primaryCtxRetain, required},
		{"cuDevicePrimaryCtxRelease_v2", &s.primaryCtxRelease, required},
		{"cuCtxPushCurrent_v2", &s.ctxPushCurrent, required},
		{"cuCtxPopCurrent_v2", &s.ctxPopCurrent, required},
		{"cuCtxSynchronize", &s.ctxSynchronize, required},
		{"cuCtxGetStreamPriorityRange", &s.ctxGetPriorityRange, "all streams have priority 0"},
		{"cuCtxEnablePeerAccess", &s.ctxEnablePeerAccess, "copies between GPUs go through host memory"},
		{"cuCtxDisablePeerAccess", &s.ctxDisablePeerAccess, "a direct way between GPUs that changes bytes can't be closed"},

		{"cuStreamCreateWithPriority", &s.streamCreate, required},
		{"cuStreamDestroy_v2", &s.streamDestroy, required},
		{"cuStreamQuery", &s.streamQuery, required},
		{"cuStreamSynchronize", &s.streamSynchronize, required},
		{"cuStreamWaitEvent", &s.streamWaitEvent, required},
		{"cuStreamGetCtx", &s.streamGetCtx, "an adopted stream is not checked to be of this device"},

		{"cuEventCreate", &s.eventCreate, required},
		{"cuEventDestroy_v2", &s.eventDestroy, required},
		{"cuEventRecord", &s.eventRecord, required},
		{"cuEventQuery", &s.eventQuery, required},
		{"cuEventSynchronize", &s.eventSynchronize, required},
		{"cuEventElapsedTime", &s.eventElapsedTime, "there is no Elapsed between events"},

		{"cuMemGetInfo_v2", &s.memGetInfo, required},
		{"cuMemAlloc_v2", &s.memAlloc, required},
		{"cuMemFree_v2", &s.memFree, required},
		{"cuMemHostAlloc", &s.memHostAlloc, required},
		{"cuMemFreeHost", &s.memFreeHost, required},
		{"cuMemHostRegister_v2", &s.memHostRegister, "memory of the caller's own can't be pinned, and pinning is slow"},
		{"cuMemHostUnregister", &s.memHostUnregister, "memory of the caller's own can't be pinned, and pinning is slow"},
		{"cuMemHostGetDevicePointer_v2", &s.memHostGetDevicePointer, "kernels can't read pinned memory"},
		{"cuMemcpyHtoDAsync_v2", &s.memcpyHtoDAsync, required},
		{"cuMemcpyDtoHAsync_v2", &s.memcpyDtoHAsync, required},
		{"cuMemcpyDtoDAsync_v2", &s.memcpyDtoDAsync, required},
		{"cuMemcpyPeerAsync", &s.memcpyPeerAsync, "there are no copies between GPUs"},
		{"cuMemsetD8Async", &s.memsetD8Async, required},

		{"cuModuleLoadDataEx", &s.moduleLoadDataEx, required},
		{"cuModuleUnload", &s.moduleUnload, required},
		{"cuModuleGetFunction", &s.moduleGetFunction, required},
		{"cuLaunchKernel", &s.launchKernel, required},
		{"cuLaunchHostFunc", &s.launchHostFunc, "there are no host functions"},

		{"cuStreamBeginCapture_v2", &s.streamBeginCapture, withoutGraphs},
		{"cuStreamEndCapture", &s.streamEndCapture, withoutGraphs},
		{"cuStreamIsCapturing", &s.streamIsCapturing, withoutGraphs},
		{"cuGraphGetNodes", &s.graphGetNodes, withoutGraphs},
		{"cuGraphNodeGetType", &s.graphNodeGetType, withoutGraphs},
		{"cuGraphNodeGetDependencies", &s.graphNodeGetDependencies, withoutGraphs},
		{"cuGraphKernelNodeGetParams_v2", &s.graphKernelNodeGetParams, withoutGraphs},
		{"cuGraphMemcpyNodeGetParams", &s.graphMemcpyNodeGetParams, withoutGraphs},
		{"cuGraphMemsetNodeGetParams", &s.graphMemsetNodeGetParams, withoutGraphs},
		{"cuGraphHostNodeGetParams", &s.graphHostNodeGetParams, withoutGraphs},
		{"cuGraphDestroy", &s.graphDestroy, withoutGraphs},
		{"cuGraphInstantiateWithFlags", &s.graphInstantiate, withoutGraphs},
		{"cuGraphExecUpdate_v2", &s.graphExecUpdate, "a graph can't be given new parameters"},
		{"cuGraphExecDestroy", &s.graphExecDestroy, withoutGraphs},
		{"cuGraphLaunch", &s.graphLaunch, withoutGraphs},
		{"cuFuncGetName", &s.funcGetName, "other libraries' kernels have no name in a graph"},
		{"cuFuncGetParamInfo", &s.funcGetParamInfo, "arguments of other libraries' kernels can't be compared in a graph"},
		{"cuKernelGetName", &s.kernelGetName, "other libraries' kernels may have no name in a graph"},
		{"cuKernelGetParamInfo", &s.kernelGetParamInfo, "arguments of other libraries' kernels may not be comparable in a graph"},
	}
}

// older are the names to look for where a symbol's own is missing. Their
// arguments are the same, or a beginning of them.
var older = map[string]string{
	"cuDeviceGetUuid_v2":            "cuDeviceGetUuid",
	"cuGraphKernelNodeGetParams_v2": "cuGraphKernelNodeGetParams",
}

// find fills s by name. The error lists every required symbol that is missing.
func (s *symbols) find(lookup func(name string) (uintptr, error)) error {
	var missing []string
	for _, sym := range s.table() {
		address, err := lookup(sym.name)
		if err != nil && older[sym.name] != "" {
			address, err = lookup(older[sym.name])
		}
		if err != nil {
			address = 0
		}
		*sym.address = address
		if address == 0 && sym.without == required {
			missing = append(missing, sym.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the driver is too old: it lacks %s; that of CUDA 11.0 or newer is needed", strings.Join(missing, ", "))
	}
	return nil
}

// notes say what is switched off for want of a symbol.
func (s *symbols) notes() []string {
	var notes []string
	for _, sym := range s.table() {
		if *sym.address == 0 && sym.without != required {
			notes = append(notes, fmt.Sprintf("the driver lacks %s: %s", sym.name, sym.without))
		}
	}
	return notes
}
