#!/usr/bin/env python3
"""Makes tests/golden/sentence_samples.json: BERT and T5 samples and the mapping they come from, written
anew from the description of Megatron-DeepSpeed's algorithms on top of numpy's RandomState.

The vocabulary of the tests: ids 0 to 5 are [PAD] [CLS] [SEP] [MASK] [BOS] [EOS], 10 to 29 are sentinels, and
every third id from 30 on goes on with the word before it."""
import json
import pathlib

import numpy as np

PAD, CLS, SEP, MASK, BOS, EOS = range(6)
SENTINELS = list(range(10, 30))
SIZE = 300


def goes_on(token):
    return token >= 30 and token % 3 == 0


class Twister64:
    """MT19937-64 as std::mt19937_64."""

    def __init__(self, seed):
        self.state = [seed]
        for i in range(1, 312):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ last >> 62) + i) % 2**64)
        self.at = 312

    def next(self):
        if self.at == 312:
            s = self.state
            for i in range(312):
                mixed = (s[i] & ~0x7FFFFFFF) | (s[(i + 1) % 312] & 0x7FFFFFFF)
                s[i] = s[(i + 156) % 312] ^ mixed >> 1 ^ (0xB5026F5AA96619E9 if mixed & 1 else 0)
            self.at = 0
        x = self.state[self.at]
        self.at += 1
        x ^= x >> 29 & 0x5555555555555555
        x ^= x << 17 & 0x71D67FFFEDA60000
        x ^= x << 37 & 0xFFF7EEE000000000
        return (x ^ x >> 43) % 2**64


def mapping(documents, max_samples, epochs, max_length, short, seed, least):
    """`documents`: the lengths of the sentences of each."""
    words = np.random.RandomState(seed)
    ratio = int(1 / short + 0.5) if short > 0 else 0

    def target():
        if not ratio:
            return max_length
        word = int(words.randint(0, 2**32, dtype=np.uint32))
        return max_length if word % ratio else 2 + word % (max_length - 1)

    rows = []
    for _ in range(epochs):
        if len(rows) >= max_samples:
            break
        begin = 0
        for lengths in documents:
            first, end = begin, begin + len(lengths)
            begin = end
            if len(lengths) < least or (len(lengths) > 1 and max(lengths) > 512):
                continue
            aim, tokens = target(), 0
            for i, length in enumerate(lengths):
                sentence = end - len(lengths) + i
                tokens += length
                left = end - sentence - 1
                if left == 0 or (tokens >= aim and left > 1 and sentence + 1 - first >= least):
                    rows.append([first, sentence + 1, aim])
                    first, tokens, aim = sentence + 1, 0, target()
    twister = Twister64(seed + 1)
    for i in range(len(rows) - 1, 0, -1):
        j = twister.next() % (i + 1)
        rows[i], rows[j] = rows[j], rows[i]
    return rows


def hide(tokens, probability, most, rng, t5):
    """The tokens after hiding, and the spans of hidden positions."""
    words = []
    for i, token in enumerate(tokens):
        if token in (CLS, SEP):
            continue
        if words and goes_on(token):
            words[-1].append(i)
        else:
            words.append([i])
    limit = min(most, max(1, int(round(len(tokens) * probability))))
    order = list(range(len(words)))
    rng.shuffle(order)
    chances = 1.0 / np.arange(1, 4)
    chances /= chances.sum()
    result, hidden, spans = list(tokens), set(), []
    for word in order:
        if len(hidden) >= limit:
            break
        count = min(rng.geometric(0.2), 10) if t5 else rng.choice(np.arange(1, 4), p=chances / chances.sum())
        span = sum(words[word:word + count], [])
        while count > 1 and len(hidden) + len(span) > limit:
            count -= 1
            span = sum(words[word:word + count], [])
        if len(hidden) + len(span) > limit or hidden & set(span):
            continue
        for i in span:
            hidden.add(i)
            if t5 or rng.random() < 0.8:
                result[i] = MASK
            elif rng.random() >= 0.5:
                result[i] = int(rng.randint(0, SIZE))
        spans.append(span)
    return result, sorted(spans)


def bert(sentences, target, seq_length, probability, binary_head, seed):
    rng = np.random.RandomState(seed % 2**32)
    swapped = False
    if binary_head:
        border = rng.randint(1, len(sentences)) if len(sentences) >= 3 else 1
        a, b = sum(sentences[:border], []), sum(sentences[border:], [])
        swapped = rng.random() < 0.5
        a, b = (b, a) if swapped else (a, b)
    else:
        a, b = sum(sentences, []), []
    truncated = len(a) + len(b) > target
    while len(a) + len(b) > target:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if rng.random() < 0.5 else -1)
    text = [CLS] + a + [SEP] + (b + [SEP] if b else [])
    types = [0] * (len(a) + 2) + [1] * (len(b) + 1 if b else 0)
    tokens, spans = hide(text, probability, probability * target, rng, False)
    padding = [PAD] * (seq_length - len(text))
    hidden = sorted(sum(spans, []))
    labels = [text[i] if i in hidden else -1 for i in range(seq_length)]
    return {"tokens": tokens + padding, "types": types + padding, "labels": labels, "is_random": bool(swapped),
            "truncated": truncated, "num_tokens": len(text)}


def t5(sentences, target, encoder_length, decoder_length, probability, seed):
    rng = np.random.RandomState(seed)
    text = sum(sentences, [])
    truncated = len(text) > target
    text = text[:target]
    hidden_text, spans = hide(text, probability, probability * target, rng, True)
    encoder, spoken, begin = [], [], 0
    for sentinel, span in zip(SENTINELS, spans, strict=False):
        encoder += hidden_text[begin:span[0]] + [sentinel]
        spoken += [sentinel] + [text[i] for i in span]
        begin = span[-1] + 1
    encoder += hidden_text[begin:]
    rest = decoder_length - len(spoken) - 1
    return {"encoder": encoder + [PAD] * (encoder_length - len(encoder)),
            "decoder": [BOS] + spoken + [PAD] * rest, "labels": spoken + [EOS] + [-1] * rest,
            "truncated": truncated, "num_spans": len(spans)}


def random_sentences(rng, least):
    return [rng.randint(30, SIZE, rng.randint(1, 25)).tolist() for _ in range(rng.randint(least, 6))]


def mapping_cases():
    rng = np.random.RandomState(11)
    cases = [{"documents": [[5, 7, 4], [9], [6, 6, 3, 8, 2], [12, 10]], "max_samples": 2**63 - 2, "epochs": 2,
              "max_length": 12, "short": 0.1, "seed": 1234, "least": 2}]
    for _ in range(12):
        documents = [rng.choice([3, 20, 90, 513], rng.randint(0, 9), p=[0.4, 0.3, 0.28, 0.02]).tolist()
                     for _ in range(rng.randint(2, 40))] + [[5, 5, 5]]
        cases.append({"documents": documents, "max_samples": int(rng.choice([1, 50, 300])), "epochs": 2**31 - 2,
                      "max_length": int(rng.choice([2, 29, 125])), "short": float(rng.choice([0, 0.1, 0.3, 1])),
                      "seed": int(rng.randint(1, 10000)), "least": int(rng.choice([1, 2]))})
    for case in cases:
        case["rows"] = mapping(*[case[key] for key in
                                 ("documents", "max_samples", "epochs", "max_length", "short", "seed", "least")])
    return cases


def bert_cases():
    rng = np.random.RandomState(12)
    cases = []
    for k in range(30):
        case = {"binary_head": bool(k % 3), "target": int(rng.choice([2, 9, 40, 61])), "seq_length": 64,
                "probability": float(rng.choice([0.15, 0.15, 0.5, 0.0])), "seed": 2**32 - 5 + k}
        case["sentences"] = random_sentences(rng, 2 if case["binary_head"] else 1)
        case.update(bert([list(s) for s in case["sentences"]], case["target"], 64, case["probability"],
                         case["binary_head"], case["seed"]) if case["probability"] else {"nothing": True})
        cases.append(case)
    return cases


def t5_cases():
    rng = np.random.RandomState(13)
    cases = []
    for k in range(20):
        case = {"target": int(rng.choice([10, 40, 62])), "probability": float(rng.choice([0.15, 0.3])), "seed": 77 + k,
                "sentences": random_sentences(rng, 1)}
        case.update(t5(case["sentences"], case["target"], 64, 48, case["probability"], case["seed"]))
        cases.append(case)
    return cases


def main():
    goldens = {"mapping": mapping_cases(), "bert": bert_cases(), "t5": t5_cases()}
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/sentence_samples.json"
    path.write_text("{\n" + ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]"
        for name, cases in goldens.items()) + "}\n")


if __name__ == "__main__":
    main()
