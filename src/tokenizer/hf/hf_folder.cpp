#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/sentencepiece/sentencepiece.h"
#include "tokenizer/wordpiece/wordpiece.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// "</s>" or {"content": "</s>", ...}
std::string token_content(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return {};
}

void read_names(const fs::path& path, SpecialTokenNames& names) {
  if (!fs::exists(path)) return;
  const nlohmann::json root = nlohmann::json::parse(read_file(path), nullptr, false);
  check(root.is_object(), path.string(), " is not a JSON object");
  const std::pair<const char*, std::string*> fields[] = {
      {"bos_token", &names.bos},  {"eos_token", &names.eos}, {"pad_token", &names.pad},
      {"unk_token", &names.unk},  {"cls_token", &names.cls}, {"sep_token", &names.sep},
      {"mask_token", &names.mask}};
  for (const auto& [field, name] : fields) {
    if (root.contains(field) && name->empty()) *name = token_content(root[field]);
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder) {
  const fs::path root(folder);
  if (const fs::path file = root / "tokenizer.json"; fs::exists(file)) {
    SpecialTokenNames names;
    read_names(root / "tokenizer_config.json", names);
    read_names(root / "special_tokens_map.json", names);
    return read_hf_tokenizer(read_file(file), file.string(), names);
  }
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (fs::exists(root / name)) return load_sentencepiece(root / name, SentencePieceKind::plain);
  }
  if (fs::exists(root / "vocab.json") && fs::exists(root / "merges.txt")) {
    return load_gpt2(root / "vocab.json", root / "merges.txt");
  }
  if (fs::exists(root / "vocab.txt")) return load_wordpiece(root / "vocab.txt");
  throw Error(concat(folder, " holds no tokenizer: neither tokenizer.json, tokenizer.model, ",
                     "spiece.model, vocab.json with merges.txt, nor vocab.txt"));
}

}  // namespace bloomery
