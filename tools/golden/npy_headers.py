#!/usr/bin/env python3
"""Writes tests/golden/npy_headers.txt: type, shape and, in hexadecimal, what numpy.save writes before
the data."""
import io
import pathlib

import numpy

CASES = [
    ("int32", (8,)), ("int64", (9, 2)), ("uint32", (5,)), ("uint8", (3,)), ("uint64", (2, 1)),
    ("uint16", (7,)), ("int32", (0,)), ("int64", (0, 2)), ("int32", (1000,)), ("uint8", (1, 99)),
    ("float32", (4, 7)), ("float32", (3, 5, 11)),
]


def main():
    lines = []
    for dtype, shape in CASES:
        file = io.BytesIO()
        description = {"descr": numpy.lib.format.dtype_to_descr(numpy.dtype(dtype)), "fortran_order": False, "shape": shape}
        numpy.lib.format.write_array_header_1_0(file, description)
        header = file.getvalue()
        lines.append(f"{dtype} {'x'.join(map(str, shape))} {header.hex()}")
    target = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/npy_headers.txt"
    target.write_text("\n".join(lines) + "\n")


main()
