"""Makes the files beside it with the PyPI package tfrecord, whose writer and whose example.proto
follow TensorFlow's.

All contents are made here, so the files are as free as this script. They were made with tfrecord
1.14.6, crc32c 2.9, protobuf 7.36.2, zstandard 0.25.0 and Python 3.11 by

    python3 -m venv venv && venv/bin/pip install tfrecord==1.14.6 crc32c zstandard==0.25.0
    venv/bin/python make.py

Record i of five has id, one int64, -i; name, the byte string "name i"; scores, i floats i+0.5; and
image, three bytes.
"""
import gzip, os, sys, zlib
import zstandard
from tfrecord import TFRecordWriter

here = os.path.dirname(os.path.abspath(__file__))
path = lambda name: os.path.join(here, name)

w = TFRecordWriter(path("examples.tfrecord"))
for i in range(5):
    w.write({"id": (-i, "int"), "name": (f"name {i}".encode(), "byte"), "scores": ([i + 0.5] * i, "float"), "image": (bytes([i, i, i]), "byte")})
w.close()
data = open(path("examples.tfrecord"), "rb").read()
with open(path("examples.tfrecord.gz"), "wb") as f:
    f.write(gzip.compress(data, mtime=0))
with open(path("examples.tfrecord.zlib"), "wb") as f:
    f.write(zlib.compress(data))
with open(path("examples.tfrecord.zst"), "wb") as f:
    f.write(zstandard.ZstdCompressor().compress(data))
