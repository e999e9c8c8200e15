#include "tokenizer/bpe/gpt2.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/byte_tokenizer.h"

namespace bloomery {
namespace {

constexpr char kEndOfText[] = "<|endoftext|>";

using Ids = std::unordered_map<std::string, TokenId>;  // by spelling

Ids parse_vocabulary(std::string_view text, const std::string& name) {
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(!file.is_discarded(), name, " is not valid JSON");
  check(file.is_object() && !file.empty(), name,
        " is not a vocabulary: a JSON object that gives each token its id is expected");
  Ids ids;
  ids.reserve(file.size());
  for (const auto& [piece, id] : file.items()) {
    check(id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
              id.get<std::int64_t>() <= INT32_MAX,
          name, ": the id of token '", piece, "' is ", id.dump(),
          "; an integer from 0 is expected");
    ids.emplace(piece, id.get<TokenId>());
  }
  return ids;
}

// The merges of the lines between the first, which is a version, and what follows the last newline,
// which should be nothing: Megatron leaves out both, whatever they are.
class MergesFile {
 public:
  MergesFile(std::string_view rest, const std::string& name, const Ids& ids)
      : name_(name), ids_(ids) {
    for (std::int64_t line = 1;; ++line) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) break;
      if (line > 1) add(rest.substr(0, end), line);
      rest.remove_prefix(end + 1);
    }
  }
  const std::vector<Merge>& merges() const { return merges_; }

 private:
  void add(std::string_view text, std::int64_t line) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) return;
    const std::size_t space = text.find(' ');
    check(space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
              text.find(' ', space + 1) == std::string_view::npos,
          name_, ", line ", line, ": '", text, "' is not two tokens with a space between");
    const std::string left(text.substr(0, space)), right(text.substr(space + 1));
    merges_.push_back({id_of(left, line), id_of(right, line), id_of(left + right, line),
                       static_cast<std::int32_t>(merges_.size())});
  }

  TokenId id_of(const std::string& piece, std::int64_t line) const {
    const auto found = ids_.find(piece);
    check(found != ids_.end(), name_, ", line ", line, ": the token '", piece,
          "' is not in the vocabulary; the merges belong to another vocabulary");
    return found->second;
  }

  const std::string& name_;
  const Ids& ids_;
  std::vector<Merge> merges_;
};

}  // namespace

std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file) {
  check(!vocab_file.empty() && !merge_file.empty(),
        "GPT2BPETokenizer needs both files: --vocab-file vocab.json --merge-file merges.txt");
  return parse_gpt2(read_file(vocab_file), vocab_file.string(), read_file(merge_file),
                    merge_file.string());
}

std::shared_ptr<const Tokenizer> parse_gpt2(std::string_view vocabulary_text,
                                            const std::string& vocab_name, std::string_view merges,
                                            const std::string& merge_name) {
  const Ids ids = parse_vocabulary(vocabulary_text, vocab_name);
  const MergesFile file(merges, merge_name, ids);
  std::vector<ByteToken> vocabulary, extra;
  for (const auto& [piece, id] : ids) {
    std::optional<std::string> bytes = unspell_bytes(piece);
    if (bytes && !bytes->empty()) {
      vocabulary.push_back({std::move(*bytes), id});
    } else {
      extra.push_back({piece, id});
    }
  }
  SpecialTokens special;
  std::vector<ByteToken> in_text;
  if (const auto eod = ids.find(kEndOfText); eod != ids.end()) {
    special.eod = special.eos = special.bos = special.unk = eod->second;
    in_text.push_back({kEndOfText, eod->second});
  }
  return std::make_shared<ByteTokenizer>(ByteTokenizerParts{
      .model = ByteBpe(std::move(vocabulary), file.merges(), {.unknown = 0}),
      .pattern = SplitPattern::gpt2,
      .extra = std::move(extra),
      .in_text = std::move(in_text),
      .spelled = true,
      .special = special,
  });
}

}  // namespace bloomery
