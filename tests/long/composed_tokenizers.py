"""tokenizer.json files put together after published models whose vocabularies are not at hand: their normalizers, splits,
post-processors and flags over the vocabularies of the shared data folder."""
import json
import lzma

UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
BYTES_BY_GPT2 = {**BYTES, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}
UNICODE = {"NFC": {"type": "NFC"}, "NFKC": {"type": "NFKC"}}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def replace(regex, content):
    return {"type": "Replace", "pattern": {"Regex": regex}, "content": content}


def cased(numbers, contractions, rest):
    return (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{contractions}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{contractions}"
            rf"|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n{rest}]*|{TAIL}")


def without_han(regex):
    return regex.replace(UPPER, UPPER[:-1] + r"&&[^\p{Han}]]").replace(LOWER, LOWER[:-1] + r"&&[^\p{Han}]]")


def added(content, number, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **flags}


def template(base, before, after):
    ids = {t["content"]: t["id"] for t in base["added_tokens"]}
    tokens = [*before, *after]
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}  # noqa: E731
    single = [*map(special, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(special, after)]
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in tokens}}


def byte_level(base, pre_tokenizer, normalizer=None, **model):
    result = json.loads(json.dumps(base))
    result.update(pre_tokenizer=pre_tokenizer, normalizer=normalizer, decoder=BYTES_BY_GPT2, post_processor=None)
    result["model"].update(model)
    return result


# The splits of byte-level tokenizers, by the model that has them; the base vocabulary does not matter to what is tried.
SPLITS = {
    "deepseek-v3": ("dolma2-cl100k", sequence(
        split(r"\p{N}{1,3}"), split(r"[一-龥぀-ゟ゠-ヿ]+"),
        split(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + TAIL),
        BYTES)),
    "deepseek-coder": ("qwen2.5", sequence(
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), DIGITS, BYTES)),
    "deepseek-llm": ("qwen2.5", sequence(
        split(r"[\r\n]"),
        split("\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕ]+"),
        split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"\s+$"), split("[一-龥ࠀ-一가-퟿]+"), split(r"\p{N}+"), BYTES)),
    "bloom": ("dolma2-cl100k", sequence(split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), BYTES)),
    "tekken": ("dolma2-cl100k", sequence(split(cased(r"\p{N}", "", "/")), BYTES)),
    "gpt-4o": ("qwen2.5", sequence(split(cased(r"\p{N}{1,3}", CONTRACTIONS + "?", "/")), BYTES)),
    "kimi-k2": ("qwen2.5", sequence(split(
        r"[\p{Han}]+|" + without_han(cased(r"\p{N}{1,3}", CONTRACTIONS + "?", ""))), BYTES)),
    "starcoder": ("gpt-neox-20b", sequence(DIGITS, BYTES_BY_GPT2)),
    "command-r": ("gpt-neox-20b", sequence(DIGITS, BYTES_BY_GPT2)),
    "superbpe": ("gpt-neox-20b", sequence(
        split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), split(r" ?\p{L}[\p{L}\p{M}'’]*(?: \p{L}+){0,3}|[^\p{L}\s]+|\s+"), BYTES)),
    "llama-4": ("dolma2-cl100k", sequence(split(
        rf"[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\d{{1,3}}(?=(?:\d{{3}})*\b)|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}"), BYTES)),
    "viking": ("gpt-neox-20b", sequence(split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), DIGITS, BYTES)),
    "poro": ("dolma2-cl100k", sequence(split(r"(?:\r?\n)+|[^\S\r\n]{2,}|\p{N}{1,2}+"), BYTES_BY_GPT2)),
    "smaug": ("qwen2.5", sequence(split(
        rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?+\p{{L}}++|\p{{N}}{{1,3}}+| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"),
        BYTES)),
}


def clip(base):
    """Lowercased text, white space collapsed, words by what matches."""
    expression = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    normalizer = {"type": "Sequence", "normalizers": [UNICODE["NFC"], replace(r"\s+", " "), {"type": "Lowercase"}]}
    result = byte_level(base, sequence(split(expression, "Removed", invert=True), BYTES), normalizer)
    # Runs of spaces would all be one space, and which token that is the reference draws by lot.
    result["added_tokens"] = [t for t in result["added_tokens"] if t["special"]]
    return result


def xlm_roberta(base):
    result = json.loads(json.dumps(base))
    charsmap = next(n for n in [base["normalizer"], *base["normalizer"].get("normalizers", [])] if n["type"] == "Precompiled")
    result["normalizer"] = {"type": "Sequence", "normalizers": [charsmap, replace(" {2,}", " ")]}
    result["pre_tokenizer"] = sequence({"type": "WhitespaceSplit"},
                                       {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True})
    return result


def albert(base):
    result = xlm_roberta(base)
    charsmap = result["normalizer"]["normalizers"][0]
    quotes = [{"type": "Replace", "pattern": {"String": q}, "content": '"'} for q in ("``", "''")]
    result["normalizer"]["normalizers"] = [*quotes, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, charsmap]
    return result


def gemma(base):
    result = json.loads(json.dumps(base))
    result["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    result["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    return result


def modern_bert(base):
    result = byte_level(base, BYTES_BY_GPT2, UNICODE["NFC"])
    end = max(max(t["id"] for t in base["added_tokens"]), max(base["model"]["vocab"].values())) + 1
    tokens = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    result["added_tokens"] += [added(t, end + i, lstrip=t == "[MASK]") for i, t in enumerate(tokens)]
    result["added_tokens"].append(added("|||IP_ADDRESS|||", end + len(tokens), special=False, normalized=True))
    result["post_processor"] = template(result, ["[CLS]"], ["[SEP]"])
    return result


def llama3(base):
    result = byte_level(base, sequence(split(
        rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}"), BYTES), ignore_merges=True)
    first = result["added_tokens"][0]["content"]
    result["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}, template(result, [first], [])]}
    return result


OTHERS = {"clip": ("gpt-neox-20b", clip), "xlm-roberta": ("t5-small", xlm_roberta), "albert": ("t5-small", albert),
          "gemma": ("mistral-7b", gemma), "modernbert": ("gpt-neox-20b", modern_bert), "llama-3": ("dolma2-cl100k", llama3)}


def compose(folder):
    """What makes each file's contents, by name."""
    def base(name):
        return json.loads(lzma.decompress((folder / f"hf-json/{name}.json.xz").read_bytes()))

    found = {}
    for name, (vocabulary, steps) in SPLITS.items():
        normalizer = UNICODE["NFC"] if name == "command-r" else None
        found[name] = lambda v=vocabulary, s=steps, n=normalizer: byte_level(base(v), s, n)
    for name, (vocabulary, make) in OTHERS.items():
        found[name] = lambda v=vocabulary, m=make: m(base(v))
    return found
