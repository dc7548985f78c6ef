"""Makes the folders beside it with MDSWriter of mosaicml-streaming.

All contents are made here, so the files are as free as this script. They were made with
mosaicml-streaming 0.13.0, numpy 2.4.6, zstd 1.5 (PyPI) and Python 3.11 by

    python3 -m venv venv && venv/bin/pip install numpy pillow zstd typing_extensions tqdm xxhash filelock catalogue
    venv/bin/pip install --no-deps mosaicml-streaming==0.13.0
    venv/bin/python make.py

The package imports PyTorch and clients of object stores, which its writer doesn't use: stand-ins that
hold nothing are enough.
"""
import importlib.abc, importlib.machinery, os, shutil, sys
from unittest import mock

class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    names = {"torch", "brotli", "snappy", "boto3", "botocore", "google", "oci", "paramiko", "azure", "databricks", "pandas", "pyspark", "huggingface_hub", "torchvision", "transformers", "requests", "google_crc32c"}
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.names or name.startswith(("streaming.vision", "streaming.text", "streaming.multimodal")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        class Module(mock.MagicMock):
            __path__, __spec__, __name__ = [], spec, spec.name
            IterableDataset = DataLoader = Dataset = object
        return Module()
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, StandIn())
import numpy as np
from streaming.base.format.mds.writer import MDSWriter

here = os.path.dirname(os.path.abspath(__file__))
columns = {
    "id": "int", "small": "uint8", "ratio": "float32", "half": "float16", "text": "str", "raw": "bytes",
    "fixed": "ndarray:int16:2,3", "typed": "ndarray:int32", "free": "ndarray", "count": "str_int", "meta": "json",
}
for name, options in ("plain", {}), ("zstd", {"compression": "zstd"}), ("hashed", {"hashes": ["sha1", "xxh64"]}):
    out = os.path.join(here, name)
    shutil.rmtree(out, ignore_errors=True)
    with MDSWriter(out=out, columns=columns, size_limit=1000, progress_bar=False, **options) as w:
        for i in range(12):
            w.write({
                "id": -i, "small": i, "ratio": i / 2, "half": i / 4, "text": f"täxt {i}", "raw": bytes([i]) * i,
                "fixed": np.arange(6, dtype=np.int16).reshape(2, 3) + i, "typed": np.arange(i + 1, dtype=np.int32),
                "free": np.full((2, i + 1), i + 0.5, np.float64), "count": 10**i, "meta": {"i": i},
            })
