#include "checkpoint/hf/hf_tokenizer_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<HfTokenizer::File>;

constexpr const char* kConfigName = "tokenizer_config.json";
constexpr const char* kNames[] = {
    "tokenizer.json",     kConfigName,       "special_tokens_map.json",
    "added_tokens.json",  "vocab.json",      "merges.txt",
    "vocab.txt",          "tokenizer.model", "spiece.model",
    "chat_template.jinja"};

void add_path(Files& files, const fs::path& path) {
  if (path.empty()) {
    return;
  }
  if (!fs::is_directory(path)) {
    const std::string extension = path.extension().string();
    const std::string name = extension == ".json"    ? "tokenizer.json"
                             : extension == ".model" ? "tokenizer.model"
                                                     : path.filename().string();
    files.push_back({name, path});
    return;
  }
  for (const char* name : kNames) {
    if (fs::exists(path / name)) {
      files.push_back({name, path / name});
    }
  }
}

bool has(const HfTokenizer& tokenizer, std::string_view name) {
  return std::ranges::find(tokenizer.files, name, &HfTokenizer::File::name) !=
         tokenizer.files.end();
}

}  // namespace

bool has_tokenizer_files(const fs::path& folder) {
  constexpr const char* kEnough[] = {"tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model",
                                     "spiece.model"};
  return std::ranges::any_of(kEnough, [&](const char* name) { return fs::exists(folder / name); });
}

HfTokenizer find_hf_tokenizer(const TokenizerOptions& options) {
  HfTokenizer found;
  add_path(found.files, options.path);
  add_path(found.files, options.tokenizer_model);
  if (!options.vocab_file.empty()) {
    const bool bpe = !options.merge_file.empty();
    found.files.push_back({bpe ? "vocab.json" : "vocab.txt", options.vocab_file});
    if (bpe) {
      found.files.push_back({"merges.txt", options.merge_file});
    }
  }
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
  for (const HfTokenizer::File& file : tokenizer.files) {
    const MappedFile source(file.source);
    AtomicFile copy(folder / file.name);
    copy.write(source.bytes().data(), source.bytes().size());
    copy.commit();
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
  AtomicFile file(folder / kConfigName);
  file.write(config.dump(2) + "\n");
  file.commit();
}

}  // namespace bloomery
