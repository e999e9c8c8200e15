#include "tokenizer/bpe/byte_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace bloomery {
namespace {

struct ByteToken {
  std::string bytes;
  TokenId id;
};

struct TokenMerge {
  TokenId left, right, result;
};

struct Model {
  std::vector<ByteToken> tokens;
  std::vector<TokenMerge> merges;
};

ByteBpe made(const std::vector<ByteToken>& tokens, const std::vector<TokenMerge>& merges,
             const ByteBpeOptions& options = {}) {
  Vocabulary vocabulary;
  for (const auto& [bytes, id] : tokens) vocabulary.add(bytes, id);
  TextJoins joins;
  for (const TokenMerge& merge : merges) {
    joins.add(merge.result, vocabulary.piece(merge.left).value().size());
  }
  return ByteBpe(std::move(vocabulary), std::move(joins), options);
}

std::string decoded(const ByteBpe& bpe, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += *bpe.tokens().piece(id);
  return text;
}

// The definition: join the leftmost pair of the first rule until no pair joins.
std::vector<TokenId> merged_by_definition(const Model& model, std::vector<TokenId> parts) {
  for (;;) {
    std::size_t best = model.merges.size(), place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      for (std::size_t rank = model.merges.size(); rank-- > 0;) {
        if (model.merges[rank].left != parts[i] || model.merges[rank].right != parts[i + 1])
          continue;
        if (rank < best) {
          best = rank;
          place = i;
        }
        break;  // of equal pairs the last counts
      }
    }
    if (best == model.merges.size()) return parts;
    parts[place] = model.merges[best].result;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

Model all_bytes() {
  Model model;
  for (int byte = 0; byte < 256; ++byte) {
    model.tokens.push_back({std::string(1, static_cast<char>(byte)), 255 - byte});
  }
  return model;
}

// Merges of random tokens over the first `letters` bytes from 'a', many with the same result by
// another pair, as real files have too.
Model random_model(std::mt19937& random, int letters, int count) {
  Model model = all_bytes();
  std::vector<ByteToken> pool(model.tokens.begin() + 'a', model.tokens.begin() + 'a' + letters);
  for (int i = 0; i < count; ++i) {
    const ByteToken left = pool[random() % pool.size()], right = pool[random() % pool.size()];
    const std::string bytes = left.bytes + right.bytes;
    if (bytes.size() > 40) continue;
    const auto known = std::ranges::find(model.tokens, bytes, &ByteToken::bytes);
    ByteToken whole{bytes, static_cast<TokenId>(model.tokens.size() + 7)};
    if (known != model.tokens.end()) {
      whole = *known;
    } else {
      model.tokens.push_back(whole);
      pool.push_back(whole);
    }
    model.merges.push_back({left.id, right.id, whole.id});
  }
  return model;
}

std::string random_text(std::mt19937& random, int letters, std::size_t length) {
  std::string text(length, 'a');
  for (char& letter : text) letter = static_cast<char>('a' + random() % letters);
  return text;
}

TEST(ByteBpe, EncodesAsMergingEveryByteDoes) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const int letters = 2 + static_cast<int>(random() % 5);
    const Model model = random_model(random, letters, 150);
    const ByteBpe bpe = made(model.tokens, model.merges, {});
    ByteBpeEncoder encoder(bpe, SplitPattern::none);
    for (int i = 0; i < 300; ++i) {
      // Lengths on both sides of the cache's limit and of the limit for scanning.
      const std::string text = random_text(random, letters, 1 + random() % (i % 3 == 0 ? 300 : 24));
      std::vector<TokenId> expected;
      for (const char byte : text) expected.push_back(255 - static_cast<unsigned char>(byte));
      expected = merged_by_definition(model, expected);
      std::vector<TokenId> ids;
      encoder.encode(text, ids);
      ASSERT_EQ(ids, expected) << text;
      ASSERT_EQ(decoded(bpe, ids), text);
    }
  }
}

TEST(ByteBpe, MoreWordsThanTheCacheHolds) {
  std::mt19937 random(4);
  const Model model = random_model(random, 5, 60);
  const ByteBpe bpe = made(model.tokens, model.merges, {});
  ByteBpeEncoder with_cache(bpe, SplitPattern::none);
  std::vector<std::string> words;
  for (int i = 0; i < 60'000; ++i) words.push_back(random_text(random, 5, 1 + random() % 15));
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < words.size(); i += pass == 0 ? 1 : 97) {
      std::vector<TokenId> ids, again;
      with_cache.encode_piece(words[i], ids);
      ASSERT_EQ(decoded(bpe, ids), words[i]);
      if (pass == 0) continue;
      ByteBpeEncoder fresh(bpe, SplitPattern::none);
      fresh.encode_piece(words[i], again);
      ASSERT_EQ(ids, again) << words[i];
    }
  }
}

TEST(ByteBpe, ATokenThatMergingDoesNotReach) {
  Model model = all_bytes();
  model.tokens.push_back({"abc", 300});
  model.tokens.push_back({"abcabcabcabcabcabc", 301});  // too long for the cache
  for (const bool whole : {false, true}) {
    const ByteBpe bpe = made(model.tokens, {}, {.whole_piece_first = whole});
    ByteBpeEncoder encoder(bpe, SplitPattern::gpt2);
    std::vector<TokenId> ids;
    encoder.encode("abc", ids);
    EXPECT_EQ(ids.size(), whole ? 1u : 3u);
    ids.clear();
    encoder.encode("abcabcabcabcabcabc", ids);
    EXPECT_EQ(ids.size(), whole ? 1u : 18u);
    ids.clear();
    encoder.encode("abcabcabcabcabcabcabc", ids);  // the whole piece only, not parts of it
    EXPECT_EQ(ids.size(), 21u);
  }
}

TEST(ByteBpe, BytesWithoutAToken) {
  const std::vector<ByteToken> tokens = {{"a", 0}, {"b", 1}, {"ab", 2}, {"?", 3}};
  const std::vector<TokenMerge> merges = {{0, 1, 2}};
  const ByteBpe dropping = made(tokens, merges);
  const ByteBpe marking = made(tokens, merges, {.unknown = 3});
  std::vector<TokenId> dropped, marked;
  ByteBpeEncoder(dropping, SplitPattern::none).encode("axbx", dropped);
  ByteBpeEncoder(marking, SplitPattern::none).encode("axbx", marked);
  EXPECT_EQ(dropped, (std::vector<TokenId>{2}));  // what remains are neighbours
  EXPECT_EQ(marked, (std::vector<TokenId>{0, 3, 1, 3}));
}

TEST(ByteBpe, ALongPieceTakesNoQuadraticTime) {
  std::mt19937 random(5);
  const Model model = random_model(random, 2, 100);
  const ByteBpe bpe = made(model.tokens, model.merges, {});
  ByteBpeEncoder encoder(bpe, SplitPattern::gpt2);
  for (const std::string& text : {std::string(1'000'000, 'a'), random_text(random, 2, 1'000'000)}) {
    std::vector<TokenId> ids;
    const auto start = std::chrono::steady_clock::now();
    encoder.encode(text, ids);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(decoded(bpe, ids), text);
  }
}

}  // namespace
}  // namespace bloomery
