#!/usr/bin/env python3
"""Makes tests/fixtures/from_python.safetensors with Python's safetensors (needs torch and safetensors).

tests/unit/test_safetensors.c knows the numbers. usage: make-safetensors-fixture.py [FILE]
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file

default = pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures/from_python.safetensors"
path = sys.argv[1] if len(sys.argv) > 1 else str(default)

save_file(
    {
        "weight": torch.arange(12, dtype=torch.float32).reshape(3, 4) / 8 - 0.5,
        "half": torch.tensor([1.0, -2.0, 3.140625, 0.0, 65280.0], dtype=torch.bfloat16),
        "ids": torch.tensor([[-1, 0, 2147483647], [-2147483648, 7, 42]], dtype=torch.int32),
        "scalar": torch.tensor(2.5, dtype=torch.float32),
        "empty": torch.zeros((0, 4), dtype=torch.float32),
    },
    path,
    metadata={"format": "pt", "note": 'quotes " and \u00fcml\u00e4uts'},
)
print(f"wrote {path}")
