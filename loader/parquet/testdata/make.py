"""Makes the files beside it with pyarrow.

All contents are made here, so the files are as free as this script. They were made with pyarrow
26.0.1 and Python 3.11 by

    python3 -m venv venv && venv/bin/pip install pyarrow==26.0.1 numpy
    venv/bin/python make.py
"""
import datetime, os
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))
path = lambda name: os.path.join(here, name)
n = 10
table = pa.table({
    "id": pa.array([-i for i in range(n)], pa.int64()),
    "small": pa.array(range(n), pa.uint8()),
    "ratio": pa.array([i / 2 for i in range(n)], pa.float32()),
    "half": pa.array(np.arange(n, dtype=np.float16) / 4),
    "flag": pa.array([i % 3 == 0 for i in range(n)]),
    "name": pa.array([f"näme {i}" for i in range(n)]),
    "raw": pa.array([bytes([i]) * i for i in range(n)], pa.binary()),
    "large": pa.array([f"large {i}" for i in range(n)], pa.large_string()),
    "pair": pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int32(), 2)),
    "floats": pa.array([[i + 0.5] * i for i in range(n)], pa.list_(pa.float32())),
    "matrix": pa.array([[[i, 1, 2], [3, 4, i]] for i in range(n)], pa.list_(pa.list_(pa.int16()))),
    "uneven": pa.array([[[1], [2, 3]] for i in range(n)], pa.list_(pa.list_(pa.int16()))),
    "when": pa.array([datetime.datetime(1970, 1, 1, 0, 0, i) for i in range(n)], pa.timestamp("ms")),
    "image": pa.array([{"bytes": b"JPEG%d" % i, "path": None} for i in range(n - 1)] + [{"bytes": None, "path": "elsewhere.jpg"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    "kind": pa.array(["cat", "dog"] * (n // 2)).dictionary_encode(),
})
for codec in "snappy", "zstd", "gzip", "brotli", "lz4", "none":
    pq.write_table(table, path(f"rows-{codec}.parquet"), row_group_size=4, compression=codec, data_page_version="2.0" if codec == "zstd" else "1.0")

nulls = pa.table({
    "optional": pa.array([None, None, None, 7777, None], pa.int64()),
    "pair": pa.array([[1, 2], None, [3, 4], [5, 6], None], pa.list_(pa.int32(), 2)),
    "strict": pa.array([[1, 2], None, [3, 4], [5, 6], None], pa.list_(pa.field("element", pa.int32(), nullable=False), 2)),
    "list": pa.array([[1, 2], None, [3], [None], []], pa.list_(pa.int32())),
    "text": pa.array(["a", None, "c", "d", None]),
})
pq.write_table(nulls, path("nulls.parquet"))
pq.write_table(pa.table({"sparse": pa.array([i if i % 100 == 37 else None for i in range(10000)], pa.int64())}), path("sparse.parquet"), row_group_size=3000)
# 2.5 GiB of strings in one column chunk, one value of 64 MiB 40 times.
big = pa.array([b"x" * (64 << 20)], pa.binary())
pq.write_table(pa.table({"big": pa.DictionaryArray.from_arrays(pa.array([0] * 40, pa.int32()), big), "id": pa.array(range(40))}), path("big.parquet"),
               compression="zstd", dictionary_pagesize_limit=1 << 30)
