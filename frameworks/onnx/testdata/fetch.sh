#!/usr/bin/env bash
# Fetches the library of ONNX Runtime for Linux on amd64 or arm64, 23 MB, for the tests: the
# Python package carries it. Prints the library's path.
#
#     LEAT_ONNXRUNTIME=$(testdata/fetch.sh) go test .
set -euo pipefail
cd "$(dirname "$0")"
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/leat/onnxruntime}
version=$(sed -n 's/^onnxruntime==\([0-9.]*\).*/\1/p' requirements.txt)
lib=$dir/libonnxruntime.so.$version
if [ ! -e "$lib" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	# Of one Python version, whatever the machine's own is: the library is the same in all.
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--only-binary=:all: --implementation cp --python-version 312 --abi cp312 \
		--platform "manylinux_2_28_$(uname -m)" --dest "$tmp" -r requirements.txt >&2
	python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel"
	mkdir -p "$dir"
	mv "$tmp/wheel/onnxruntime/capi/libonnxruntime.so.$version" "$lib.$$"
	mv "$lib.$$" "$lib" # whole or not at all
fi
echo "$lib"
