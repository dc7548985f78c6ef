"""Makes the models of the tests, with the package onnx 1.19.1:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install onnx==1.19.1
    /tmp/venv/bin/python models.py

classify.onnx   scores = pixels·w + b for any number of rows, and the largest of them:
                pixels float32 [rows, 2, 3] -> scores float32 [rows, 4], class int64 [rows].
                w[i, j] = i - j and b[j] = j/4, so that a test can work the scores out.
fixed.onnx      the same for batches of exactly 4 rows.
lengths.onnx    an output whose second dimension the model does not tell: x float32
                [rows, 3] -> found int64 [2, n].
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = [helper.make_opsetid("", 17)]


def classify(rows):
    w = np.array([[i - j for j in range(4)] for i in range(6)], np.float32)
    b = np.array([j / 4 for j in range(4)], np.float32)
    return helper.make_graph(
        [
            helper.make_node("Flatten", ["pixels"], ["flat"], axis=1),
            helper.make_node("Gemm", ["flat", "w", "b"], ["scores"]),
            helper.make_node("ArgMax", ["scores"], ["class"], axis=1, keepdims=0),
        ],
        "classify",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [rows, 2, 3])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [rows, 4]),
            helper.make_tensor_value_info("class", TensorProto.INT64, [rows]),
        ],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
    )


def lengths():
    return helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["found"])],
        "lengths",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])],
        [helper.make_tensor_value_info("found", TensorProto.INT64, [2, "n"])],
    )


for name, graph in {"classify": classify("rows"), "fixed": classify(4), "lengths": lengths()}.items():
    model = helper.make_model(graph, opset_imports=OPSET, ir_version=8, producer_name="leat")
    onnx.checker.check_model(model)
    onnx.save(model, name + ".onnx")
