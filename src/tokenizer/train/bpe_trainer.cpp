#include "tokenizer/train/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/train/merge_learner.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

class Vocabulary {
 public:
  // The token's id, a new one if it is new.
  std::uint32_t add(std::string token) {
    const auto [entry, is_new] =
        ids_.emplace(std::move(token), static_cast<std::uint32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(entry->first);
    return entry->second;
  }
  const std::string& operator[](std::uint32_t id) const { return tokens_[id]; }
  std::size_t size() const { return tokens_.size(); }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

std::array<std::uint32_t, 256> add_bytes(Vocabulary& vocabulary) {
  std::array<std::pair<std::string, std::size_t>, 256> spellings;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    spellings[byte] = {spell_bytes(std::string(1, static_cast<char>(byte))), byte};
  }
  std::ranges::sort(spellings);  // UTF-8 sorts as its code points do
  std::array<std::uint32_t, 256> id_of_byte{};
  for (auto& [spelling, byte] : spellings) {
    id_of_byte[byte] = vocabulary.add(std::move(spelling));
  }
  return id_of_byte;
}

// A pair that was merged twice (see MergeLearner::merge) has its last rank.
std::vector<std::pair<TokenId, TokenId>> ranked(const std::vector<TokenPair>& merges) {
  std::unordered_set<std::uint64_t> later;
  std::vector<std::pair<TokenId, TokenId>> result;
  for (auto merge = merges.rbegin(); merge != merges.rend(); ++merge) {
    if (later.insert(static_cast<std::uint64_t>(merge->left) << 32 | merge->right).second) {
      result.emplace_back(static_cast<TokenId>(merge->left), static_cast<TokenId>(merge->right));
    }
  }
  std::ranges::reverse(result);
  return result;
}

}  // namespace

std::vector<std::string> problems(const BpeTrainingOptions& options) {
  std::vector<std::string> found;
  const auto& specials = options.special_tokens;
  for (const std::string& token : specials) {
    if (token.empty()) found.push_back("--special-tokens: a token needs a text");
    if (!is_utf8(token)) found.push_back("--special-tokens: a token is not UTF-8");
  }
  if (std::set(specials.begin(), specials.end()).size() != specials.size()) {
    found.push_back("--special-tokens names a token twice");
  }
  const auto least = 256 + static_cast<std::int64_t>(specials.size());
  if (options.vocab_size < least) {
    found.push_back(concat("--vocab-size ", options.vocab_size,
                           " has no room for the 256 bytes and ", specials.size(),
                           " special tokens; give at least ", least));
  }
  return found;
}

TrainedBpe train_bpe(const WordCounts& words, const BpeTrainingOptions& options,
                     const std::function<bool(std::size_t tokens)>& go_on) {
  for (const std::string& problem : problems(options)) {
    throw Error(problem);
  }
  Vocabulary vocabulary;
  for (const std::string& token : options.special_tokens) {
    vocabulary.add(token);
  }
  MergeLearner learner(words, add_bytes(vocabulary));
  std::vector<TokenPair> merges;
  while (static_cast<std::int64_t>(vocabulary.size()) < options.vocab_size) {
    if (go_on != nullptr && !go_on(vocabulary.size())) break;
    const std::optional<MergeLearner::Best> best = learner.best();
    if (!best || best->count < options.min_frequency) break;
    merges.push_back(best->pair);
    learner.merge(vocabulary.add(vocabulary[best->pair.left] + vocabulary[best->pair.right]));
  }
  return {vocabulary.take(), ranked(merges), options.special_tokens};
}

}  // namespace bloomery
