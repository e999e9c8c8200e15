#!/usr/bin/env python3
"""Parquet files beside pyarrow: the rows that `data filter` keeps must be those that pyarrow reads.

    build/oracle/bin/python tests/long/parquet.py BLOOMERY [FILES]
    build/oracle/bin/python tests/long/parquet.py --golden FOLDER

FILES (200) random files with columns of every type, encoding, compression, page version and pattern of
nulls. --golden writes the small files of tests/golden/parquet and their rows as JSON lines."""
import datetime
import decimal
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import uuid

import pyarrow
import pyarrow.parquet

UTC = datetime.timezone.utc
WORDS = ["", "a", "naïve", "日本語", 'quote " and \\', "line\nbreak\ttab", "\x00\x01\x1f\x7f", "😀", "x" * 300]
CODECS = ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"]
ENCODINGS = {
    "string": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "integer": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "float": ["PLAIN", "BYTE_STREAM_SPLIT"],
    "fixed": ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
    "boolean": ["PLAIN", "RLE"],
}


def text(rng):
    return "".join(rng.choice(WORDS) for _ in range(rng.randrange(5)))


def moment(rng):
    return datetime.datetime(1900, 1, 1) + datetime.timedelta(
        days=rng.randrange(100_000), seconds=rng.randrange(86_400))


def number(rng, bits, signed=True):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([low, high, 0, 7, rng.randint(low, high)])


def real(rng):
    return rng.choice([0.0, -0.0, 1.5, 1e5, 1e15, 1e16, 1e22, 1e-4, 1e-5, 5e-324, 1.7e308, float("inf"),
                       float("-inf"), float("nan"), rng.random(), rng.gauss(0, 1e10)])


def exact(rng, precision, scale):
    digits = rng.randrange(10 ** rng.randrange(1, precision + 1))
    return decimal.Decimal(rng.choice([-1, 1]) * digits).scaleb(-scale, decimal.Context(prec=80))


# Name: Arrow's type, a maker of values, and the kind of ENCODINGS (None: not chosen).
LEAVES = {
    "string": (pyarrow.string(), text, "string"),
    "large_string": (pyarrow.large_string(), text, "string"),
    "binary": (pyarrow.binary(), lambda r: text(r).encode(), "string"),
    "fixed_binary": (pyarrow.binary(3), lambda r: r.choice([b"abc", b"xyz", b"1\n3"]), "fixed"),
    "dictionary": (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), lambda r: r.choice(WORDS), None),
    "bool": (pyarrow.bool_(), lambda r: r.random() < 0.5, "boolean"),
    **{f"int{b}": (getattr(pyarrow, f"int{b}")(), lambda r, b=b: number(r, b), "integer")
       for b in (8, 16, 32, 64)},
    **{f"uint{b}": (getattr(pyarrow, f"uint{b}")(), lambda r, b=b: number(r, b, False), "integer")
       for b in (8, 16, 32, 64)},
    "half": (pyarrow.float16(), lambda r: r.choice([0.5, 1.0, -2.25, 6e-8, float("inf")]), "fixed"),
    "float": (pyarrow.float32(), lambda r: r.choice([0.1, -1e30, 16777216.0, float("nan")]), "float"),
    "double": (pyarrow.float64(), real, "float"),
    "date": (pyarrow.date32(), lambda r: moment(r).date(), "integer"),
    "time_ms": (pyarrow.time32("ms"), lambda r: moment(r).time().replace(microsecond=250_000), "integer"),
    "time_us": (pyarrow.time64("us"), lambda r: moment(r).time().replace(microsecond=r.randrange(10**6)),
                "integer"),
    "stamp_ms": (pyarrow.timestamp("ms"), moment, None),
    "stamp_us": (pyarrow.timestamp("us", tz="UTC"),
                 lambda r: moment(r).replace(microsecond=r.randrange(10**6), tzinfo=UTC), None),
    "stamp_ns": (pyarrow.timestamp("ns"), moment, None),
    "decimal": (pyarrow.decimal128(9, 3), lambda r: exact(r, 9, 3), None),
    "long_decimal": (pyarrow.decimal256(60, 20), lambda r: exact(r, 60, 20), None),
    "uuid": (pyarrow.uuid(), lambda r: uuid.UUID(int=r.getrandbits(128)).bytes, None),
    "nothing": (pyarrow.null(), lambda r: None, None),
}
NESTABLE = ["string", "int64", "double", "bool", "date", "large_string"]


def nested(rng, depth):
    """A random type and a maker of its values, some of them null."""
    kind = rng.choice(["list", "struct", "map"]) if depth else "leaf"
    gaps = rng.choice([0, 0.2, 0.7])

    def some(make):
        return lambda r: None if r.random() < gaps else make(r)

    if kind == "leaf":
        kind, make, _ = LEAVES[rng.choice(NESTABLE)]
        return kind, some(make)
    if kind == "list":
        inner, make = nested(rng, depth - 1)
        return pyarrow.list_(inner), some(lambda r: [make(r) for _ in range(r.choice([0, 1, 2, 5]))])
    if kind == "map":
        inner, make = nested(rng, depth - 1)
        return (pyarrow.map_(pyarrow.string(), inner),
                some(lambda r: [(f"k{i}", make(r)) for i in range(r.choice([0, 1, 3]))]))
    members = [(f"m{i}", *nested(rng, rng.randrange(depth))) for i in range(rng.randrange(1, 4))]
    return (pyarrow.struct([(name, type) for name, type, _ in members]),
            some(lambda r: {name: make(r) for name, _, make in members}))


def chat(rng):
    kind = pyarrow.list_(pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string()),
                                         ("tools", pyarrow.list_(pyarrow.string()))]))
    return kind, lambda r: [{"role": r.choice(["user", "assistant"]), "content": text(r),
                             "tools": r.choice([None, [], ["x", None]])} for _ in range(r.randrange(4))]


def random_file(path, rng, page_version=None, rows=None):
    """Writes a table; returns its rows as JSON. (pyarrow does not read back all that it writes.)"""
    rows = rows or rng.choice([1, 17, 100, 400])
    names = rng.sample(list(LEAVES), rng.randrange(1, 8))
    columns = {"text": (pyarrow.string(), lambda r: "text " + text(r))}
    encodings, dictionaries = {}, []
    for name in names:
        kind, make, encoding = LEAVES[name]
        gaps = rng.choice([0, 0.1, 0.6, 1])
        columns[name] = (kind, lambda r, make=make, gaps=gaps: None if r.random() < gaps else make(r))
        if encoding and rng.random() < 0.6:
            encodings[name] = rng.choice(ENCODINGS[encoding])
        elif rng.random() < 0.7:
            dictionaries.append(name)
    for i in range(rng.randrange(3)):
        columns[f"nested{i}"] = nested(rng, rng.randrange(1, 4))
    columns["messages"] = chat(rng)
    order = list(columns)
    rng.shuffle(order)
    table = pyarrow.table({name: pyarrow.array([columns[name][1](rng) for _ in range(rows)], columns[name][0])
                           for name in order})
    pyarrow.parquet.write_table(
        table, path, compression=rng.choice(CODECS), column_encoding=encodings or None,
        use_dictionary=dictionaries, data_page_version=page_version or rng.choice(["1.0", "2.0"]),
        version=rng.choice(["1.0", "2.4", "2.6"]), write_page_checksum=rng.random() < 0.5,
        data_page_size=rng.choice([64, 1000, 1 << 20]), write_batch_size=rng.choice([1, 7, 1024]),
        row_group_size=rng.choice([7, 50, 10_000]), store_schema=rng.random() < 0.7,
        use_compliant_nested_type=rng.random() < 0.5,
        use_deprecated_int96_timestamps="stamp_us" not in names and rng.random() < 0.3,  # has no zone
        write_statistics=rng.random() < 0.5)
    return [as_json(row) for row in table.to_pylist()]


def as_json(value):
    """A value of pyarrow's as the text that json.dumps would make, if it knew all types."""
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_json(name)}: {as_json(member)}" for name, member in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_json, value)) + "]"
    if isinstance(value, bytes):
        value = value.decode()
    elif isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).isoformat()
    elif isinstance(value, (datetime.date, datetime.time)):
        value = value.isoformat()
    elif isinstance(value, uuid.UUID):
        value = str(value)
    elif value is not None and not isinstance(value, (bool, int, str)):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value, ensure_ascii=False)


def check_one(bloomery, folder, seed):
    rng = random.Random(seed)
    path = folder / f"{seed}.parquet"
    expected = random_file(path, rng)
    subprocess.run([bloomery, "data", "filter", "--input", path, "--output", folder / f"out{seed}",
                    "--min-characters", "1", "--strict"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, text=True)
    lines = (folder / f"out{seed}" / f"{seed}.jsonl").read_text().removesuffix("\n").split("\n")
    assert len(lines) == len(expected), f"seed {seed}: {len(lines)} rows, not {len(expected)}"
    for row, (line, right) in enumerate(zip(lines, expected)):
        assert line == right, f"seed {seed}, row {row}:\n{line}\n{right}"


def write_golden(folder):
    """A file of each compression and page version."""
    folder.mkdir(parents=True, exist_ok=True)
    for codec in CODECS:
        for version in ("1.0", "2.0"):
            write_small_file(folder / f"{codec.lower()}_v{version[0]}.parquet", codec, version)


def write_small_file(path, codec, version):
    rng = random.Random(f"{codec} {version}")
    there = {"NONE": "UNCOMPRESSED"}.get(codec, codec)
    while True:
        lines = "".join(row + "\n" for row in random_file(path, rng, version, 12))
        data = pyarrow.parquet.read_metadata(path).row_group(0)
        columns = [data.column(i) for i in range(data.num_columns)]
        encodings = {encoding for column in columns for encoding in column.encodings}
        if (columns[0].compression == there and path.stat().st_size < 8000 and len(lines) < 8000
                and len(columns) > 6 and any("DELTA" in encoding for encoding in encodings)):
            break
    path.with_suffix(".jsonl").write_text(lines)


def main():
    if sys.argv[1] == "--golden":
        return write_golden(pathlib.Path(sys.argv[2]))
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(files):
            try:
                check_one(sys.argv[1], pathlib.Path(folder), seed)
            except subprocess.CalledProcessError as error:
                sys.exit(f"seed {seed}: {error.stderr}")
    print(f"parquet: {files} files, the rows that pyarrow reads")


main()
