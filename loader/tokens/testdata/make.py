"""Makes the token files of this folder: the numbers 0 to 19 in each format.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6
    venv/bin/pip install --no-deps megatron-core==0.16.1
    venv/bin/python make.py

The .idx files and their .bin files are written by Megatron-LM's own IndexedDatasetBuilder
(megatron-core, Apache-2.0 and BSD-3-Clause). It is loaded without PyTorch, of which it needs
nothing but a name, to write. gpt2.bin and llama3.bin have the layout of write_datafile in
dev/data/data_common.py of llm.c (MIT), plain.bin that of nanoGPT's prepare.py (MIT), which is
ndarray.tofile, and olmo.npy that of OLMo, a numpy.memmap (Apache-2.0). The numbers are made here
and have no licence of their own.
"""
import importlib.util
import os
import sys
from unittest import mock

import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
count = 20


def llmc(name, magic, version, dtype):
    header = np.zeros(256, dtype=np.int32)
    header[:3] = magic, version, count
    with open(name, "wb") as f:
        f.write(header.tobytes())
        f.write(np.arange(count, dtype=dtype).tobytes())


llmc("gpt2.bin", 20240520, 1, np.uint16)
llmc("llama3.bin", 20240801, 7, np.uint32)
np.arange(count, dtype=np.uint16).tofile("plain.bin")
memory = np.memmap("olmo.npy", dtype=np.uint16, mode="w+", shape=(count,))
memory[:] = np.arange(count)
memory.flush()
np.save("array.npy", np.arange(count, dtype=np.uint16))


def builder():
    spec = importlib.util.find_spec("megatron")
    path = os.path.join(spec.submodule_search_locations[0], "core/datasets/indexed_dataset.py")
    for name in ("torch", "megatron.core", "megatron.core.datasets",
                 "megatron.core.datasets.object_storage_utils", "megatron.core.msc_utils",
                 "megatron.core.utils"):
        sys.modules[name] = mock.MagicMock()
    sys.modules["torch"].utils.data.Dataset = object
    spec = importlib.util.spec_from_file_location("indexed_dataset", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch.utils"] = sys.modules["torch"].utils
    module.__dict__["MultiStorageClientFeature"] = None
    spec.loader.exec_module(module)
    module.MultiStorageClientFeature.is_enabled = lambda: False
    return module


class Tensor(np.ndarray):
    """As much of a tensor as the builder asks for."""

    def numpy(self):
        return np.asarray(self)

    def numel(self):
        return self.size


def megatron(name, vocabulary):
    module = builder()
    b = module.IndexedDatasetBuilder(name + ".bin", dtype=module.DType.optimal_dtype(vocabulary))
    for begin, end in ((0, 5), (5, 11), (11, 20)):
        b.add_item(np.arange(begin, end).view(Tensor))
        if begin != 5:
            b.end_document()
    b.finalize(name + ".idx")


megatron("text", 50257)
megatron("large", 100000)
