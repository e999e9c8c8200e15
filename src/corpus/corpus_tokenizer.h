// Which tokenizer a corpus was made with: a note beside it, PREFIX.tokenizer.json, since .bin and
// .idx are Megatron's to the byte. Corpora of other programs have none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {

class Tokenizer;

struct CorpusTokenizer {
  std::string name;         // as it was given, for messages
  std::int64_t tokens = 0;  // of its vocabulary
  std::string hash;         // tokenizer_hash() of them

  bool same_ids(const CorpusTokenizer& other) const {
    return tokens == other.tokens && hash == other.hash;
  }
};

CorpusTokenizer corpus_tokenizer(const Tokenizer& tokenizer, const std::string& name);

std::filesystem::path tokenizer_note_path(const std::filesystem::path& prefix);
// What the file says of the corpus beside it, whose sizes it names.
std::string tokenizer_note(const CorpusTokenizer& tokenizer, std::uint64_t bin_bytes,
                           std::uint64_t idx_bytes);
// Nothing where there is no note, or one of a corpus that has been replaced since.
std::optional<CorpusTokenizer> read_corpus_tokenizer(const std::filesystem::path& prefix);

// The tokenizer of all these corpora; nothing where one has no note. An Error names two that
// differ, unless `allow_mismatch`, and then there is nothing either.
std::optional<CorpusTokenizer> common_tokenizer(const std::vector<std::filesystem::path>& prefixes,
                                                bool allow_mismatch);

// An Error names the first of these corpora whose ids are not the tokenizer's, which is called
// `name`. Tokens that the tokenizer has behind those of the corpus's own are no difference.
void require_corpus_tokenizer(const std::vector<std::string>& prefixes, const Tokenizer& tokenizer,
                              const std::string& name);

}  // namespace bloomery
