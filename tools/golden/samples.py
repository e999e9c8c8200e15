#!/usr/bin/env python3
"""Makes tests/golden/samples.json: the sample order of Megatron-DeepSpeed, written anew from the
description of its algorithms on top of numpy's RandomState and torch's randperm.

Large arrays are stored as the MD5 of their bytes.
"""
import hashlib
import json
import math
import pathlib

import numpy as np
import torch


def md5(array):
    return hashlib.md5(np.ascontiguousarray(array).tobytes()).hexdigest()


def made_lengths(count, modulus, seed=0):
    """Lengths that the tests make again with integer arithmetic only."""
    return [int((i + seed) * 2654435761 % 2**32 % modulus) for i in range(count)]


def random_cases():
    cases = []
    for seed in (0, 42, 1234, 2**32 - 1):
        rng = np.random.RandomState(seed)
        case = {"seed": seed}
        for count in (1, 2, 10, 33):
            values = np.arange(count, dtype=np.int32)
            rng.shuffle(values)
            case[f"shuffle_{count}"] = values.tolist()
        for dtype in ("int32", "int64", "uint32"):
            values = np.arange(100003, dtype=dtype)
            rng.shuffle(values)
            case["md5_" + dtype] = md5(values)
        case["random"] = [rng.random() for _ in range(5)]
        case["randint"] = [int(rng.randint(low, high)) for low, high in
                           ((0, 1), (0, 7), (1, 2), (-5, 5), (0, 2**31), (0, 2**32), (0, 2**40), (3, 2**62))]
        p = np.array([6 / 11, 3 / 11, 2 / 11])
        case["choice"] = [int(rng.choice(np.arange(3), p=p)) for _ in range(30)]
        case["geometric_0.2"] = [int(rng.geometric(0.2)) for _ in range(30)]
        case["geometric_0.6"] = [int(rng.geometric(0.6)) for _ in range(30)]
        case["rand"] = float(rng.rand())
        cases.append(case)
    return cases


def randperm_cases():
    cases = []
    for seed in (0, 1, 7, 100000):
        for count in (0, 1, 2, 10, 50000):
            generator = torch.Generator()
            generator.manual_seed(seed)
            order = torch.randperm(count, generator=generator).numpy()
            case = {"seed": seed, "count": count, "md5": md5(order.astype(np.uint32))}
            if count <= 10:
                case["order"] = order.tolist()
            cases.append(case)
    return cases


def split_borders(text, count):
    parts = [float(word) for word in text.split("," if "," in text else "/")]
    parts = (parts + [0.0, 0.0])[:3]
    total = sum(parts)
    borders = [0]
    for part in parts:
        borders.append(borders[-1] + int(round(part / total * float(count))))
    excess = borders[-1] - count
    return [0] + [border - excess for border in borders[1:]]


def split_cases():
    rows = [("969, 30, 1", 1000), ("949,50,1", 79000), ("98,2,0", 7), ("1,1,1", 10), ("969,30,1", 1),
            ("90/5/5", 1000), ("100", 17), ("1,0,0", 5), ("1,1", 5), ("0.5,0.25,0.25", 6), ("3,3,3", 100),
            ("80,10,10", 2**33 + 5), ("969, 30, 1", 100000000)]
    return [{"split": text, "count": count, "borders": split_borders(text, count)} for text, count in rows]


def gpt_index(lengths, first, seq_length, num_samples, seed, exact_epochs=None):
    tokens = sum(lengths)
    epochs = 1
    while (epochs * tokens - 1) // seq_length < num_samples:
        epochs += 1
    epochs = exact_epochs or epochs
    total = (epochs * tokens - 1) // seq_length
    apart = False
    if epochs > 1:
        before = ((epochs - 1) * tokens - 1) // seq_length
        apart = num_samples - before < int(0.80 * ((tokens - 1) // seq_length))
    rng = np.random.RandomState(seed)
    ids = np.arange(first, first + len(lengths), dtype=np.int32)
    parts = [np.tile(ids, epochs - apart)] + ([ids.copy()] if apart else [])
    for part in parts:
        rng.shuffle(part)
    documents = np.concatenate(parts)
    # Where token i * seq_length of all documents in a row lies; an empty document holds none.
    ends = np.cumsum(np.array(lengths, dtype=np.int64)[documents - first])
    starts = np.arange(total + 1, dtype=np.int64) * seq_length
    position = np.searchsorted(ends, starts, side="right")
    rows = np.stack([position, starts - np.concatenate([[0], ends])[position]], axis=1)
    rows[0] = 0
    together = before if apart else total
    shuffled = [np.arange(together, dtype=np.uint32), np.arange(together, total, dtype=np.uint32)]
    rng.shuffle(shuffled[0])
    if together < total:
        rng.shuffle(shuffled[1])
    return {"epochs": epochs, "apart": bool(apart), "total": total, "documents": documents,
            "rows": rows.astype(np.int64), "shuffle": np.concatenate(shuffled)}


def gpt_cases():
    small = [3, 5, 2, 7, 4, 6, 1, 8]
    cases = []
    for lengths, first, seq_length, num_samples, seed, exact in (
            (small, 0, 4, 7, 1234, None), (small, 0, 4, 20, 1234, None), (small, 5, 4, 26, 1, None),
            (small, 0, 1, 36, 0, None), (small, 0, 40, 3, 7, None), (small, 0, 4, 20, 1234, 3),
            ([0, 0, 5, 0, 1], 0, 2, 4, 3, None), ([1], 0, 3, 5, 99, None), ([9], 0, 4, 0, 1234, None)):
        index = gpt_index(lengths, first, seq_length, num_samples, seed, exact)
        case = {"lengths": lengths, "first": first, "seq_length": seq_length, "num_samples": num_samples,
                "seed": seed, "exact": exact}
        case.update({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in index.items()})
        cases.append(case)
    for count, modulus, seq_length, num_samples, seed in (
            (1000, 700, 128, 2000, 1234), (1000, 700, 128, 5500, 42), (20000, 300, 1024, 11000, 5)):
        index = gpt_index(made_lengths(count, modulus), 0, seq_length, num_samples, seed)
        cases.append({"made": [count, modulus], "first": 0, "seq_length": seq_length,
                      "num_samples": num_samples, "seed": seed, "exact": None, "epochs": index["epochs"],
                      "apart": index["apart"], "total": index["total"], "md5_documents": md5(index["documents"]),
                      "md5_rows": md5(index["rows"]), "md5_shuffle": md5(index["shuffle"])})
    return cases


def blend(weights, size):
    taken = [0] * len(weights)
    which, sample = [], []
    for i in range(size):
        errors = [w * max(i, 1.0) - t for w, t in zip(weights, taken)]
        best = errors.index(max(errors))
        which.append(best)
        sample.append(taken[best])
        taken[best] += 1
    return which, sample


def blend_cases():
    cases = []
    for weights, requested in (([0.3, 0.5, 0.2], 11), ([1, 1], 10), ([3], 4), ([0.1, 0.1, 0.1, 0.7], 5000),
                               ([1e-7, 1, 2e5], 1000), ([7, 5, 3, 2] * 10, 3000)):
        total = 0.0
        for weight in weights:
            total += weight
        shares = [weight / total for weight in weights]
        sizes = [int(math.ceil(requested * share * 1.005)) for share in shares]
        # The blend normalises once more, which may change the last bit.
        normal = np.array(shares, dtype=np.float64)
        normal /= np.sum(normal)
        which, sample = blend(normal.tolist(), sum(sizes))
        case = {"weights": weights, "requested": requested, "sizes": sizes, "printed": str(normal)}
        if requested <= 20:
            case.update({"which": which, "sample": sample})
        case.update({"md5_which": md5(np.array(which, np.uint8)), "md5_sample": md5(np.array(sample, np.int64))})
        cases.append(case)
    return cases


def printed_weight_cases():
    """How numpy prints arrays of weights, which is part of what names the cache of a blend."""
    rng = np.random.RandomState(3)
    arrays = [[1.0], [0.5, 0.5], [0.3, 0.5, 0.2], [1 / 3] * 3, [1e-5, 1 - 1e-5], [0.001, 0.999], [0.0005, 0.9995],
              [0.0, 1.0], [1e-300, 1.0], [0.25] * 4, [1 / 254] * 254]
    for count in (2, 3, 5, 7, 8, 9, 13, 40):
        for power in (1, 2, 6):
            values = rng.rand(count) ** power
            arrays.append((values / values.sum()).tolist())
    return [{"weights": values, "printed": str(np.array(values))} for values in arrays]


def cyclic_batch(total, micro, ranks, rank, sharding, consumed):
    """The samples of one rank when all have consumed so many."""
    block = micro * ranks
    blocks = total // block
    epoch, place = divmod(consumed // block, blocks)
    generator = torch.Generator()
    generator.manual_seed(epoch)
    if sharding:
        mine = torch.randperm(blocks * micro, generator=generator) + rank * blocks * micro
        return mine[place * micro:(place + 1) * micro].tolist()
    everything = torch.randperm(total // micro * micro, generator=generator)
    return everything[place * block:(place + 1) * block][rank::ranks].tolist()


def cyclic_cases():
    cases = []
    for total, micro, ranks, sharding in ((23, 2, 3, True), (23, 2, 3, False), (8, 4, 2, True), (100, 3, 4, False),
                                          (100, 3, 4, True), (7, 1, 1, False)):
        block = micro * ranks
        count = 2 * (total // block) + 1
        cases.append({"total": total, "micro": micro, "ranks": ranks, "sharding": sharding,
                      "batches": [[cyclic_batch(total, micro, ranks, rank, sharding, n * block) for n in range(count)]
                                  for rank in range(ranks)]})
    return cases


def main():
    goldens = {"random": random_cases(), "randperm": randperm_cases(), "split": split_cases(),
               "gpt": gpt_cases(), "blend": blend_cases(), "printed": printed_weight_cases(),
               "cyclic": cyclic_cases()}
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/samples.json"
    path.write_text("{\n" + ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]"
        for name, cases in goldens.items()) + "}\n")


if __name__ == "__main__":
    main()
