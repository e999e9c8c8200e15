#include "checkpoint/hf/hf_tokenizer_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
constexpr const char* kConfigName = "tokenizer_config.json";

bool has(const HfTokenizer& tokenizer, std::string_view name) {
  return std::ranges::find(tokenizer.files, name, &TokenizerFile::name) != tokenizer.files.end();
}

}  // namespace

bool has_tokenizer_files(const fs::path& folder) {
  constexpr const char* kEnough[] = {"tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model",
                                     "spiece.model"};
  return std::ranges::any_of(kEnough, [&](const char* name) { return fs::exists(folder / name); });
}

HfTokenizer find_hf_tokenizer(const TokenizerOptions& options) {
  HfTokenizer found{.files = tokenizer_files(options), .tokens = {}, .end_of_text = {}};
  const auto tokenizer = load_tokenizer(options);
  const SpecialTokens& special = tokenizer->special();
  const auto end = special.eod ? special.eod : special.eos;
  found.tokens = {special.bos ? special.bos : end, end, special.pad};
  if (end) {
    found.end_of_text = tokenizer->piece(*end);
  }
  return found;
}

void write_tokenizer_files(const fs::path& folder, const HfTokenizer& tokenizer,
                           std::int64_t max_positions) {
  for (const TokenizerFile& file : tokenizer.files) {
    write_file(folder / file.name, read_file(file.source));
  }
  const bool byte_pairs = has(tokenizer, "vocab.json") && has(tokenizer, "merges.txt");
  const bool whole = has(tokenizer, "tokenizer.json");
  if (has(tokenizer, kConfigName) || (!byte_pairs && !whole)) {
    return;
  }
  // A tokenizer.json says how texts are divided; the class of vocab.json and merges.txt would
  // divide them GPT-2's way whatever it says.
  nlohmann::ordered_json config{
      {"tokenizer_class", whole ? "PreTrainedTokenizerFast" : "GPT2Tokenizer"},
      {"model_max_length", max_positions},
      {"clean_up_tokenization_spaces", false}};
  if (tokenizer.end_of_text) {
    config["bos_token"] = *tokenizer.end_of_text;
    config["eos_token"] = *tokenizer.end_of_text;
    config["unk_token"] = *tokenizer.end_of_text;
  }
  write_file(folder / kConfigName, config.dump(2) + "\n");
}

}  // namespace bloomery
