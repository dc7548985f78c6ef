module github.com/leat-go/leat/frameworks/onnx

go 1.26.0

require (
	// A version that exists: whoever imports this module does not see the replace below.
	github.com/leat-go/leat v0.0.0-20261201121744-d553924b4372
	github.com/stretchr/testify v1.12.1
	github.com/yalue/onnxruntime_go v1.35.0
)

require (
	github.com/KimMachineGun/automemlimit v1.0.1 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/leat-go/leat => ../..
