#include "corpus/corpus_tokenizer.h"

#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "config/json_fields.h"
#include "corpus/indexed_corpus.h"
#include "tokenizer/tokenizer_hash.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWayOut = "--allow-tokenizer-mismatch takes the ids as they are";

std::uint64_t size_or_none(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

CorpusTokenizer corpus_tokenizer(const Tokenizer& tokenizer, const std::string& name) {
  return {name, tokenizer.vocab_size(), tokenizer_hash(tokenizer, tokenizer.vocab_size())};
}

fs::path tokenizer_note_path(const fs::path& prefix) {
  fs::path path = prefix;
  return path += ".tokenizer.json";
}

std::string tokenizer_note(const CorpusTokenizer& tokenizer, std::uint64_t bin_bytes,
                           std::uint64_t idx_bytes) {
  const nlohmann::ordered_json note{{"tokenizer", tokenizer.name},
                                    {"tokens", tokenizer.tokens},
                                    {"hash", tokenizer.hash},
                                    {"bin_bytes", bin_bytes},
                                    {"idx_bytes", idx_bytes}};
  return note.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<CorpusTokenizer> read_corpus_tokenizer(const fs::path& prefix) {
  const fs::path path = tokenizer_note_path(prefix);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const JsonFields note(read_file(path), path.string());
  CorpusTokenizer found{note.get<std::string>("tokenizer"), note.count("tokens"),
                        note.get<std::string>("hash")};
  const auto is_size = [&](const char* field, const fs::path& file) {
    return static_cast<std::uint64_t>(note.count(field)) == size_or_none(file);
  };
  if (!is_size("bin_bytes", bin_path(prefix)) || !is_size("idx_bytes", idx_path(prefix))) {
    return std::nullopt;
  }
  return found;
}

std::optional<CorpusTokenizer> common_tokenizer(const std::vector<fs::path>& prefixes,
                                                bool allow_mismatch) {
  std::optional<CorpusTokenizer> first;
  fs::path first_prefix;
  bool all = true;
  for (const fs::path& prefix : prefixes) {
    const std::optional<CorpusTokenizer> found = read_corpus_tokenizer(prefix);
    all = all && found.has_value();
    if (!found) continue;
    if (!first) {
      first = found;
      first_prefix = prefix;
    }
    if (first->same_ids(*found)) continue;
    check(allow_mismatch, first_prefix.string(), " was made with the tokenizer ", first->name, ", ",
          prefix.string(), " with ", found->name,
          ", whose ids differ: preprocess one of them again; ", kWayOut);
    all = false;
  }
  return all ? first : std::nullopt;
}

void require_corpus_tokenizer(const std::vector<std::string>& prefixes, const Tokenizer& tokenizer,
                              const std::string& name) {
  std::map<std::int64_t, std::string> hashes;  // of the first so many ids
  for (const std::string& prefix : prefixes) {
    const std::optional<CorpusTokenizer> made_with = read_corpus_tokenizer(prefix);
    if (!made_with) continue;
    std::string& hash = hashes[made_with->tokens];
    if (hash.empty()) hash = tokenizer_hash(tokenizer, made_with->tokens);
    check(made_with->tokens <= tokenizer.vocab_size() && made_with->hash == hash, "the corpus ",
          prefix, " was made with the tokenizer ", made_with->name, " (", made_with->tokens,
          " tokens), not with ", name, " (", tokenizer.vocab_size(),
          " tokens), whose ids differ: give that tokenizer, or preprocess the text again; ",
          kWayOut);
  }
}

}  // namespace bloomery
