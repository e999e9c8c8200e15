#include "chat/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;
using Flags = std::vector<std::uint8_t>;

// Letters, the bytes of an umlaut apart, one merge, and the special token <s>.
std::shared_ptr<const Tokenizer> tokenizer() {
  return read_hf_tokenizer(R"({
      "added_tokens": [{"id": 8, "content": "<s>", "special": true, "normalized": false}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<": 2, ">": 3, "s": 4, "ab": 5, "Ã": 6, "¤": 7}, "merges": ["a b"]}})",
                           "tokenizer.json", {});
}

jinja::Text marked(std::initializer_list<std::pair<const char*, char>> parts) {
  jinja::Text text;
  for (const auto& [bytes, mark] : parts) text.append(bytes, mark);
  return text;
}

TEST(MarkedEncoder, TakesSpecialTokensFromTheTemplateAlone) {
  const auto own = tokenizer();
  MarkedEncoder encoder(*own, false);
  EXPECT_EQ(encoder.encode(marked({{"<s>ab", 0}})).ids, (Ids{8, 5}));
  EXPECT_EQ(encoder.encode(marked({{"<s>a", 0}, {"b", jinja::kFromInput}})).ids, (Ids{8, 5}))
      << "pieces reach across";
  EXPECT_EQ(encoder.encode(marked({{"<s>", 0}, {"a<s>", jinja::kFromInput}, {"b<s>", 0}})).ids,
            (Ids{8, 0, 2, 4, 3, 1, 8}));
}

TEST(MarkedEncoder, KnowsWhatIsToBeLearnt) {
  const auto own = tokenizer();
  MarkedEncoder encoder(*own, false);
  const char learn = jinja::kGenerated;
  EXPECT_EQ(encoder.encode(marked({{"ab", 0}})).generated, (Flags{0}));
  EXPECT_EQ(encoder.encode(marked({{"<s>b", 0}, {"a<s>", learn}, {"s", 0}})).generated,
            (Flags{0, 0, 1, 1, 0}));
  EXPECT_EQ(encoder.encode(marked({{"a", 0}, {"bs", learn}})).generated, (Flags{1, 1}))
      << "a token that touches it";
  const MarkedTokens umlaut = encoder.encode(marked({{"a", 0}, {"ä", learn}, {"s", 0}}));
  EXPECT_EQ(umlaut.ids, (Ids{0, 6, 7, 4}));
  EXPECT_EQ(umlaut.generated, (Flags{0, 1, 1, 0})) << "all bytes of a character";
}

// Qwen's normalizer: a decomposed character is not what decoding gives back.
TEST(MarkedEncoder, FindsAnswersInWhatIsNormalised) {
  const auto own = read_hf_tokenizer(R"({
      "added_tokens": [{"id": 4, "content": "<s>", "special": true, "normalized": false}],
      "normalizer": {"type": "NFC"},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ã": 2, "¤": 3}, "merges": []}})",
                                     "tokenizer.json", {});
  MarkedEncoder encoder(*own, false);
  const MarkedTokens tokens =
      encoder.encode(marked({{"<s>a\u0308b", 0}, {"a\u0308b<s>", jinja::kGenerated}, {"a", 0}}));
  EXPECT_EQ(tokens.ids, (Ids{4, 2, 3, 1, 2, 3, 1, 4, 0}));
  EXPECT_EQ(tokens.generated, (Flags{0, 0, 0, 0, 1, 1, 1, 1, 0}));
}

// Llama-2's and Mistral's: bytes for what has no token, a space before text behind special tokens.
TEST(MarkedEncoder, FindsAnswersAmongBytesAndSpaces) {
  const std::filesystem::path root = std::getenv("BLOOMERY_ROOT");
  for (const char* kind : {"llama2", "llama2/tokenizer.model", "mistral"}) {
    const auto own = load_tokenizer({.path = root / "tests/golden/tokenizers" / kind});
    MarkedEncoder encoder(*own, false);
    const std::string prompt =
        "<s>[INST] \U0001F642\U0001F642\U0001F642\U0001F642\U0001F642 \u12A0\u121B\u122D\u129B "
        "[/INST]";
    const MarkedTokens tokens =
        encoder.encode(marked({{prompt.c_str(), 0}, {" the boat</s>", jinja::kGenerated}}));
    EXPECT_EQ(tokens.ids.front(), *own->special().bos) << kind;
    EXPECT_EQ(tokens.ids.back(), *own->special().eos) << kind;
    EXPECT_EQ(tokens.generated.back(), 1) << kind;
    const auto first = std::ranges::find(tokens.generated, 1) - tokens.generated.begin();
    EXPECT_EQ(std::ranges::count(tokens.generated, 1), std::ssize(tokens.ids) - first) << kind;
    std::vector<TokenId> before;
    own->make_encoder({.parse_control = true})->encode(prompt, before);
    EXPECT_EQ(first, std::ssize(before)) << kind;
  }
}

}  // namespace
}  // namespace bloomery
