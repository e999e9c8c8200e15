#!/usr/bin/env python3
"""Writes tests/golden/npy_headers.txt: type, shape and, in hexadecimal, what numpy.save writes before
the data."""
import io
import pathlib

import numpy

CASES = [
    ("int32", (8,)), ("int64", (9, 2)), ("uint32", (5,)), ("uint8", (3,)), ("uint64", (2, 1)),
    ("uint16", (7,)), ("int32", (0,)), ("int64", (0, 2)), ("int32", (1000,)), ("uint8", (1, 99)),
]


def main():
    lines = []
    for dtype, shape in CASES:
        array = numpy.zeros(shape, dtype)
        file = io.BytesIO()
        numpy.save(file, array)
        data = file.getvalue()
        header = data[: len(data) - array.nbytes]
        lines.append(f"{dtype} {'x'.join(map(str, shape))} {header.hex()}")
    target = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/npy_headers.txt"
    target.write_text("\n".join(lines) + "\n")


main()
