#include "tokenizer/wordpiece/model.h"

#include <algorithm>

namespace bloomery {

WordPieceModel::WordPieceModel(std::span<const ByteTrie::Entry> vocabulary, const Options& options)
    : trie_(vocabulary),
      continuation_(trie_.walk(ByteTrie::kRoot, options.continuation)),
      unknown_(options.unknown),
      longest_word_(options.longest_word) {}

bool WordPieceModel::longer_than_allowed(std::string_view word) const {
  if (word.size() <= longest_word_) return false;
  const auto characters =
      std::count_if(word.begin(), word.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
  return static_cast<std::size_t>(characters) > longest_word_;
}

void WordPieceModel::encode(std::string_view word, std::vector<TokenId>& ids) const {
  if (longer_than_allowed(word)) {
    ids.push_back(unknown_);
    return;
  }
  const std::size_t before = ids.size();
  ByteTrie::State from = ByteTrie::kRoot;
  for (std::size_t at = 0; at < word.size(); from = continuation_) {
    const ByteTrie::Match match =
        from == ByteTrie::kNowhere ? ByteTrie::Match{0, 0} : trie_.longest(word, at, from);
    if (match.length == 0) {
      ids.resize(before);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(match.value);
    at += match.length;
  }
}

}  // namespace bloomery
