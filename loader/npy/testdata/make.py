"""Makes the arrays of this folder with NumPy itself, and bfloat16 with ml_dtypes.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 ml_dtypes==0.7.0
    venv/bin/python make.py

NumPy is BSD-3-Clause, ml_dtypes Apache-2.0. The values are those of arange, made here, and
have no licence of their own.
"""
import os
import numpy as np
import ml_dtypes

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def counted(shape, dtype):
    return np.arange(int(np.prod(shape)), dtype="i8").reshape(shape).astype(dtype)


np.save("int64.npy", counted((4, 3), "<i8"))
np.save("uint8.npy", counted((5, 2, 2), "u1"))
np.save("float16.npy", counted((3, 2), "<f2"))
np.save("float64.npy", counted((6,), "<f8"))
np.save("bool.npy", counted((4, 2), "?"))
np.save("big.npy", counted((3, 2), ">i4"))
np.save("big64.npy", counted((3, 2), ">f8"))
np.save("fortran.npy", np.asfortranarray(counted((4, 3, 5, 2), "<f4")))
np.save("fortranbig.npy", np.asfortranarray(counted((3, 2), ">u2")))
np.save("bfloat16.npy", counted((3, 2), ml_dtypes.bfloat16))
np.save("scalar.npy", np.float64(3))
np.save("empty.npy", np.zeros((0, 3), "<f4"))
np.save("nobytes.npy", np.zeros((3, 0), "<f4"))
np.save("struct.npy", np.zeros(2, [("a", "<i4"), ("b", "<f4", (2,))]))
np.save("text.npy", np.array(["a", "bc"]))
np.save("date.npy", np.zeros(2, "M8[ns]"))
np.save("complex.npy", np.zeros(2, "c8"))
np.save("object.npy", np.array([None, 1], object), allow_pickle=True)

with open("version2.npy", "wb") as f:
    np.lib.format.write_array(f, counted((4, 3), "<i8"), version=(2, 0))
with open("version3.npy", "wb") as f:
    np.lib.format.write_array(f, counted((4, 3), "<i8"), version=(3, 0))

arrays = {
    "image": counted((6, 2, 3), "<f4"),
    "label": counted((6,), "<i8"),
    "turned": np.asfortranarray(counted((6, 4), "<i2")),
}
np.savez("stored.npz", **arrays)
np.savez_compressed("deflated.npz", **arrays)
np.savez("other.npz", image=counted((6, 2), "<f4"), mean=np.float32(2))
