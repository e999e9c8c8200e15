// Comparing a tokenizer with stored vectors.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "harness/shared_data.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

inline std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text,
                                    const EncodeOptions& options = {}) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(options)->encode(text, ids);
  return ids;
}

struct TokenVector {
  std::string text;
  std::vector<TokenId> ids;
};

// The vectors of llama.cpp for one vocabulary: texts between separators, a line of ids for each.
inline std::vector<TokenVector> llama_cpp_vectors(const std::string& name) {
  const std::filesystem::path folder = *shared_data("tokenizers/golden/llama.cpp");
  const std::string input = read_file(folder / "common.inp");
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::istringstream lines(read_file(folder / (name + ".out")));
  std::vector<TokenVector> vectors;
  std::string line;
  for (std::size_t at = 0, end; (end = input.find(separator, at)) != std::string::npos;
       at = end + separator.size()) {
    std::getline(lines, line);
    std::istringstream numbers(line);
    TokenVector vector{input.substr(at, end - at), {}};
    for (TokenId id = 0; numbers >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

// FNV-1a over the ids as little-endian numbers, then the text: what tools/golden/tokenizer_fuzz.py
// stores.
inline std::string token_fingerprint(const std::vector<TokenId>& ids, std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&](std::uint32_t byte) { hash = (hash ^ byte) * 0x100000001B3; };
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      add(static_cast<std::uint32_t>(id) >> shift & 0xFF);
    }
  }
  for (const char byte : text) add(static_cast<unsigned char>(byte));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (int shift = 60; shift >= 0; shift -= 4) result += kDigits[hash >> shift & 15];
  return result;
}

}  // namespace bloomery
