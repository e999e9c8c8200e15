"""Random texts that try tokenizers: every script, emoji sequences, combining marks, control
characters, runs of white space, numbers, code, and the special tokens of a vocabulary."""
import collections
import unicodedata

LONGEST = 4096  # bytes
MEAN = 120
# Assigned in Unicode 15.0 and unknown to Python 3.11.
ADDED_IN_15 = [
    (0xCF3, 0xCF3), (0xECE, 0xECE), (0x10EFD, 0x10EFF), (0x1123F, 0x11241), (0x11B00, 0x11B09),
    (0x11F00, 0x11F10), (0x11F12, 0x11F3A), (0x11F3E, 0x11F59), (0x1342F, 0x1342F),
    (0x13439, 0x13455), (0x1B132, 0x1B132), (0x1B155, 0x1B155), (0x1D2C0, 0x1D2D3),
    (0x1DF25, 0x1DF2A), (0x1E030, 0x1E06D), (0x1E08F, 0x1E08F), (0x1E4D0, 0x1E4F9),
    (0x1F6DC, 0x1F6DC), (0x1F774, 0x1F776), (0x1F77B, 0x1F77F), (0x1F7D9, 0x1F7D9),
    (0x1FA75, 0x1FA77), (0x1FA87, 0x1FA88), (0x1FAAD, 0x1FAAF), (0x1FABB, 0x1FABD),
    (0x1FABF, 0x1FABF), (0x1FACE, 0x1FACF), (0x1FADA, 0x1FADB), (0x1FAE8, 0x1FAE8),
    (0x1FAF7, 0x1FAF8), (0x31350, 0x323AF)]
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x58F), (0x5D0, 0x5EA),
          (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xE00, 0xE7F), (0xF00, 0xFDA),
          (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x135A), (0x13A0, 0x13F5),
          (0x1780, 0x17DD), (0x1E00, 0x1F15), (0x2000, 0x2064), (0x2070, 0x209C), (0x2100, 0x218B),
          (0x2460, 0x24FF), (0x2580, 0x27BF), (0x3041, 0x3096), (0x3099, 0x30FF), (0x3200, 0x33FF),
          (0x4E00, 0x9FFF), (0xA640, 0xA6F7), (0xAB70, 0xABBF), (0xAC00, 0xD7A3), (0xF900, 0xFA6D),
          (0xFB50, 0xFBC2), (0xFF01, 0xFFBE), (0x10400, 0x1049D), (0x118A0, 0x118F2),
          (0x1D400, 0x1D454), (0x1D7CE, 0x1D7FF), (0x1E900, 0x1E943), (0x1F300, 0x1F64F),
          (0x20000, 0x2A6DF)]
ODDITIES = [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f", "e\u0301", "o\u0308\u0332", "\uac00\u11a8",
    "\u1100\u1161\u11a8", "\ufb01", "\u334d", "\u0130", "I\u0307", "\u00df", "\u1e9e",
    "\u03a3\u03c2", "\u03a3 ", "\u017f", "\u212a", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff",
    "\u00ad", "\u180e", "\u2581", "\u2581\u2581a", "\ufffd", "\uffff", "\U0010ffff", "\ue000",
    "\u302e\u302f", "\U0001d15e", "\u0958", "\u0344", "\u0f73", "\u1fbc", "\ufdfa", "\u2026",
    "\u201cx\u201d", "\u2047", "<0x0A>", "<s>", "</s>", "<unk>", "[CLS]", "[MASK]", "[UNK]",
    "<|endoftext|>", "<|im_start|>", "<extra_id_0>", "<pad>", "##ing", "don't", "I'M", "we'Ll",
    "THEY'VE", "'\u017f", "'s", "''s", " 'd", "do not", " n't", "a b", "...", "!!!!", "//", "/\n",
    "@#$%", "_", "\u0120", "\u010a", "\u00c4\u0120", "\u4f60\u597d\u3002", "\u3002\u3001"]
SPACES = [" ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\v", "\f", "\x1c",
          "\x1f", "\x85", "\u00a0", "\u1680", "\u2003", "\u2009", "\u2028", "\u2029", "\u202f", "\u205f",
          "\u3000"]
CODE = ["def f(x):\n    return x[0]\n", "for (int i = 0; i < n; ++i) {\n\t", "}\n\n", "#include <a.h>\n",
        "a_b.c->d()", "std::vector<int>", "camelCaseName", "HTTPServer2", "x=-1.5e-3;", "\"\\n\"",
        "https://a.b/c?d=e&f=%20", "<div class=\"x\">", "# comment", "/* x */", "0x1F", "SELECT *",
        "        ", "\t\t\t", "!==", "&&", "'''", "`x`", "$HOME/*.txt", "a@b.org"]
WORDS = ("the of and to in is that it was for on are as with his they at be this from have or by one had "
         "not but what all were when we there can an your which their said if do will each about how "
         "Model Training TRANSFORMER attention Paris London naïve café résumé Zürich Łódź für être "
         "señor привет мир данные и не Слово γλώσσα και שלום עולם مرحبا بالعالم नमस्ते दुनिया "
         "สวัสดี ชาวโลก xin chào thế giới 你好 世界 日本語 テスト ありがとう 안녕 세계 token tokenizer "
         "antidisestablishmentarianism unbelievable preprocessing 's 're").split()


def assigned_by_category():
    """Characters by general category, so that small categories come up as often as large ones."""
    added = {c for first, last in ADDED_IN_15 for c in range(first, last + 1)}
    groups = collections.defaultdict(list)
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category not in ("Cn", "Cs"):
            groups[category].append(chr(code))
        elif code in added:
            groups["added in 15"].append(chr(code))
    groups["added in 15"] += [chr(0x11F02), chr(0x1FAE8)]  # never empty
    return [groups[name] for name in sorted(groups)]


class TextMaker:
    def __init__(self, random, special_tokens=()):
        self.random = random
        self.special = list(special_tokens)
        self.categories = assigned_by_category()
        self.marks = [c for group in self.categories for c in group
                      if unicodedata.category(c) in ("Mn", "Mc", "Me")]
        self.kinds = ([self.words] * 6 + [self.block] * 4 + [self.any_characters] * 3 +
                      [self.odd] * 3 + [self.spaces] * 2 + [self.code] * 2 +
                      [self.number, self.marked, self.repeated, self.control, self.token])

    def text(self):
        r = self.random
        wanted = min(LONGEST, int(r.expovariate(1 / (MEAN - 16))))
        parts, size = [], 0
        while size < wanted:
            part = r.choice(self.kinds)()
            parts.append(part)
            size += len(part.encode())
        return "".join(parts).encode()[:LONGEST].decode(errors="ignore")

    def texts(self, count):
        return [self.text() for _ in range(count)]

    def words(self):
        r = self.random
        separator = r.choice((" ", " ", " ", "", ", ", "-"))
        return separator.join(r.choices(WORDS, k=r.randint(1, 5))) + r.choice((" ", ".", "", "\n"))

    def block(self):
        first, last = self.random.choice(BLOCKS)
        return "".join(chr(self.random.randint(first, last)) for _ in range(self.random.randint(1, 6)))

    def any_characters(self):
        r = self.random
        return "".join(r.choice(r.choice(self.categories)) for _ in range(r.randint(1, 4)))

    def odd(self):
        return self.random.choice(ODDITIES)

    def spaces(self):
        r = self.random
        if r.random() < 0.1:
            return " " * r.randint(1, 40)
        return "".join(r.choices(SPACES, k=r.randint(1, 4)))

    def code(self):
        return self.random.choice(CODE)

    def number(self):
        r = self.random
        return r.choice((str(r.randint(0, 10 ** r.randint(1, 12))), f"{r.random():.6f}",
                         f"{r.randint(1, 10 ** 7):,}", "٣٤٥", "१२३", "½Ⅷ²", "１２３"))

    def marked(self):
        r = self.random
        return r.choice("aeoußиक가あ ") + "".join(r.choices(self.marks, k=r.randint(1, 5)))

    def repeated(self):
        r = self.random
        return r.choice(r.choice((WORDS, ODDITIES, "abxyz01!?.'-= _\n", r.choice(self.categories)))
                        ) * r.randint(2, 12)

    def control(self):
        r = self.random
        return "".join(chr(r.choice((r.randint(0, 31), r.randint(127, 159)))) for _ in range(r.randint(1, 3)))

    def token(self):
        if not self.special:
            return ""
        r = self.random
        return r.choice(("", "", " ", "\n")) + r.choice(self.special) + r.choice(("", "", " ", "s"))


def long_texts(maker, size=1 << 20):
    """Ten texts of one megabyte each, by name."""
    r = maker.random

    def filled(make):
        parts, length = [], 0
        while length < size:
            parts.append(make())
            length += len(parts[-1].encode())
        return "".join(parts).encode()[:size].decode(errors="ignore")

    def letters(alphabet):
        return lambda: "".join(r.choices(alphabet, k=4096))

    return {"random": filled(maker.text),
            "words": filled(maker.words),
            "letters": filled(letters("abcdefghijklmnopqrstuvwxyz")),
            "spaces": " " * size,
            "newlines": "\n" * size,
            "one letter": "a" * size,
            "digits": filled(letters("0123456789")),
            "han": filled(letters([chr(c) for c in range(0x4E00, 0x9FFF)])),
            "marks": "a" + filled(letters(maker.marks)),
            "emoji": filled(letters([chr(c) for c in range(0x1F300, 0x1F64F)] + ["\u200d", "\ufe0f"]))}
