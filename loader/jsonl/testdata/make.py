"""Makes the files of this folder with the json module of Python's standard library:

    python3 make.py

The values are made up here and have no licence of their own.
"""
import json
import os

os.chdir(os.path.dirname(os.path.abspath(__file__)))

values = [
    {"text": "plain", "label": 3, "box": [[0, 1.5], [-2e-3, 4]], "ok": True, "more": {"a": [1, "}"]}},
    {"label": -9007199254740993, "text": 'said "so"\n\\', "ok": False, "box": [[1, 2], [3, 4]]},
    {"box": [[0, 0], [0, 0]], "text": "é \u4e16 \U0001f600", "label": 0, "ok": True},
    {"text": "", "label": 7, "box": [[9, 9], [9, 9]], "ok": False},
]
for name, options in (("ascii.jsonl", {}), ("utf8.jsonl", {"ensure_ascii": False}), ("dense.jsonl", {"separators": (",", ":")})):
    with open(name, "w", encoding="utf-8") as f:
        for v in values:
            f.write(json.dumps(v, **options) + "\n")
