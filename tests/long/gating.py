#!/usr/bin/env python3
"""DeepSpeed's own gates (top1gating, top2gating, topkgating) beside ours on random cases with the same draws.

    build/oracle/bin/python tests/long/gating.py BLOOMERY_ROUTE_TOKENS [CASES]

Capacities and kept (token, expert) pairs must be equal, gates and balance loss within 1e-6; without dropping, two choices
of a renormalised top-k are Mixtral's."""
import subprocess
import sys

import numpy
import torch
from deepspeed.moe import sharded_moe

NONE, FIRST, SECOND = range(3)
RANDOM, POSITION, PROBABILITY = range(3)


def theirs(case):
    logits, draws = torch.from_numpy(case["logits"].copy()), torch.from_numpy(case["draws"])
    sharded_moe.exp_selection_uniform_map[logits.device] = lambda shape: draws
    sharded_moe.gumbel_map[logits.device] = lambda shape: draws
    factor, least, drop = case["factor"], case["least"], bool(case["drop"])
    if case["kind"] == "mixtral":
        p = logits.softmax(-1)
        gates, chosen = p.topk(case["topk"], -1)
        gates = gates / gates.sum(-1, keepdim=True)
        return torch.zeros_like(p).scatter(1, chosen, gates), None
    if case["topk"] == 1:
        policy = "RSample" if case["sampling"] == FIRST else None
        aux, weights, _, _ = sharded_moe.top1gating(logits, factor, least, None, policy, drop, case["priority"] == RANDOM and drop)
    elif case["topk"] == 2:
        aux, weights, _, _ = sharded_moe.top2gating(logits, factor, least, drop, None, case["sampling"] == SECOND)
    else:
        aux, weights, _, _ = sharded_moe.topkgating(logits, case["topk"], factor, least, drop)
    return weights.sum(-1), aux.item()


def random_case(random, number):
    kind = ["top1", "top2", "topk", "mixtral"][number % 4]
    topk = {"top1": 1, "top2": 2, "topk": int(random.integers(3, 5)), "mixtral": int(random.integers(1, 4))}[kind]
    experts = int(random.integers(max(topk, 2), 17))
    tokens = int(random.integers(4, 90))
    case = dict(kind=kind, tokens=tokens, experts=experts, topk=topk, sampling=NONE, priority=POSITION, renormalise=int(kind != "top1"),
                balance=int(topk > 2), drop=int(kind != "mixtral" and random.integers(4) > 0), factor=float(random.choice([0.5, 0.75, 1.0, 1.25, 2.0])),
                least=int(random.integers(0, 5)), logits=random.normal(size=(tokens, experts)).astype(numpy.float32) * 2)
    case["draws"] = random.random((tokens, experts)).astype(numpy.float32)
    if kind == "top1":
        case["priority"] = RANDOM
        if not case["drop"] and random.integers(2):
            case["sampling"] = FIRST
    if kind == "top2" and random.integers(2):
        case["sampling"] = SECOND
    if kind == "topk":
        case["priority"] = PROBABILITY
    if case["sampling"] != NONE:
        case["draws"] = random.gumbel(size=(tokens, experts)).astype(numpy.float32)
    return case


def text(case):
    names = ("tokens", "experts", "topk", "sampling", "priority", "renormalise", "balance", "drop", "factor", "least")
    numbers = [repr(case[name]) for name in names]
    return " ".join(numbers + ["%.9g" % x for key in ("logits", "draws") for x in case[key].ravel()])


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    random = numpy.random.default_rng(7)
    cases = [random_case(random, i) for i in range(count)]
    answers = subprocess.run([program], input="\n".join(map(text, cases)), text=True, capture_output=True, check=True).stdout.splitlines()
    assert len(answers) == count
    dropped = 0
    for number, (case, answer) in enumerate(zip(cases, answers)):
        words = answer.split()
        place = f"case {number}: { {k: v for k, v in case.items() if k not in ('logits', 'draws')} }"
        expected, aux = theirs(case)
        ours = torch.zeros_like(expected)
        for i, (expert, gate) in enumerate(zip(words[2::2], words[3::2])):
            if int(expert) >= 0:
                ours[i // case["topk"], int(expert)] = float(gate)
            else:
                dropped += 1
        assert torch.equal(ours != 0, expected != 0), f"{place}: other pairs are kept"
        assert (ours - expected).abs().max() < 1e-6, f"{place}: gates differ by {(ours - expected).abs().max()}"
        assert aux is None or abs(aux - float(words[1])) < 1e-6 * abs(aux) + 1e-6, f"{place}: balance loss {words[1]}, not {aux}"
    print(f"{count} cases, {dropped} dropped choices: as DeepSpeed and Mixtral choose")


main()
