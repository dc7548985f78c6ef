"""Makes the files of this folder with the safetensors package itself.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 ml_dtypes==0.7.0 safetensors==0.8.0
    venv/bin/python make.py

safetensors is Apache-2.0, NumPy BSD-3-Clause. The values are those of arange, made here, and
have no licence of their own.
"""
import os
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def counted(shape, dtype):
    return np.arange(int(np.prod(shape)), dtype="i8").reshape(shape).astype(dtype)


save_file({
    "latent": counted((4, 2, 3), "<f4"),
    "label": counted((4,), "<i8"),
    "half": counted((4, 2), "<f2"),
    "brain": counted((4, 2), ml_dtypes.bfloat16),
    "mask": counted((4, 2), "?"),
    "none": counted((4, 0), "u1"),
}, "features.safetensors", metadata={"made by": "testdata/make.py", "quote": '"}'})
save_file({
    "label": counted((2,), "<i8"),
    "latent": counted((2, 2, 3), "<f4"),
    "scale": np.array(2, "<f8"),
    "small": counted((2, 2), ml_dtypes.float8_e4m3fn),
}, "more.safetensors")
save_file({}, "empty.safetensors")
