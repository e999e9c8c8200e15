#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/hf/folder_notes.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/model_tables.h"
#include "tokenizer/sentencepiece/sentencepiece.h"
#include "tokenizer/utf8.h"
#include "tokenizer/wordpiece/wordpiece.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

struct Notes {  // NOLINT(bugprone-exception-escape): JSON's move, which throws nothing
  json config, added;
  SpecialTokenNames names;
};

std::string read_text(const fs::path& path) {
  std::string text = read_file(path);
  check(is_utf8(text), path.string(), " is not UTF-8");
  return text;
}

// true, false, or absent.
std::optional<bool> flag(const json& config, const char* name) {
  const auto found = config.find(name);
  return found != config.end() && found->is_boolean() ? std::optional(found->get<bool>())
                                                      : std::nullopt;
}

// What add_bos_token and add_eos_token put around a text.
json around_texts(const Notes& notes, const hf::ModelTables& tables) {
  json around = {{"type", "TemplateProcessing"},
                 {"single", json::array({{{"Sequence", {{"id", "A"}}}}})},
                 {"special_tokens", json::object()}};
  const auto add = [&](const char* wanted, const std::string& name, bool before) {
    const auto found = std::ranges::find(tables.vocab, name, &hf::ModelTables::Token::piece);
    if (!flag(notes.config, wanted).value_or(false) || found == tables.vocab.end()) return;
    json& single = around["single"];
    const json token = {{"SpecialToken", {{"id", name}}}};
    single.insert(before ? single.begin() : single.end(), token);
    const auto place = static_cast<std::size_t>(found - tables.vocab.begin());
    around["special_tokens"][name] = {
        {"ids", {static_cast<std::uint32_t>(hf::id_at(tables, place))}}};
  };
  add("add_bos_token", notes.names.bos, true);
  add("add_eos_token", notes.names.eos, false);
  return around;
}

// vocab.json and merges.txt, as of GPT-2 and RoBERTa.
json read_byte_level(const fs::path& folder, Notes& notes, hf::ModelTables& tables) {
  hf::read_vocab_json(read_text(folder / "vocab.json"), "vocab.json", tables);
  read_merges_txt(tables.keep(read_text(folder / "merges.txt")), "merges.txt", tables);
  hf::add_known({"<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>"}, tables, notes.added);
  if (hf::has_token(tables, "<|endoftext|>") && !hf::has_token(tables, "<s>")) {
    for (std::string* name : {&notes.names.bos, &notes.names.eos, &notes.names.unk}) {
      if (name->empty()) *name = "<|endoftext|>";  // GPT-2's, for everything
    }
  }
  const bool prefix = notes.config.value("add_prefix_space", json(false)) == json(true);
  return {{"model", {{"type", "BPE"}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", prefix}}},
          {"post_processor", around_texts(notes, tables)},
          {"decoder", {{"type", "ByteLevel"}}}};
}

// vocab.txt, as of BERT.
json read_word_piece(const fs::path& folder, Notes& notes, hf::ModelTables& tables) {
  hf::each_line(tables.keep(read_text(folder / "vocab.txt")),
                [&](std::string_view line) { tables.vocab.push_back({line}); });
  json settings = word_piece_settings(tables);
  json& normalizer = settings["normalizer"];
  const auto take = [&](const char* setting, const char* field) {
    if (notes.config.contains(setting)) normalizer[field] = notes.config[setting];
  };
  take("tokenize_chinese_chars", "handle_chinese_chars");
  take("strip_accents", "strip_accents");
  take("do_lower_case", "lowercase");
  notes.added.insert(notes.added.end(), settings["added_tokens"].begin(),
                     settings["added_tokens"].end());
  settings.erase("added_tokens");
  return settings;
}

std::shared_ptr<const Tokenizer> load_json(const fs::path& folder) {
  Notes notes;
  notes.names = hf::read_folder_notes(folder, notes.config, notes.added);
  hf::ModelTables tables;
  json settings;
  std::optional<FileText> text;
  if (const fs::path file = folder / "tokenizer.json"; fs::exists(file)) {
    settings = hf::read_tokenizer_json(text.emplace(file), file.string(), tables);
  } else if (fs::exists(folder / "merges.txt")) {
    settings = read_byte_level(folder, notes, tables);
  } else {
    settings = read_word_piece(folder, notes, tables);
  }
  hf::add_tokens(notes.added, settings);
  return make_hf_tokenizer(JsonFields::of(std::move(settings), folder.string()), tables,
                           folder.string(), notes.names);
}

std::shared_ptr<const Tokenizer> load_model(const fs::path& folder, const fs::path& file) {
  Notes notes;
  SentencePieceNotes own{.names = hf::read_folder_notes(folder, notes.config, notes.added)};
  for (const json& token : notes.added) {
    own.added.push_back(
        {token.at("content").get<std::string>(), token.at("special") == json(true)});
  }
  if (!notes.config.contains("added_tokens_decoder")) {  // which would have their ids
    // T5's tokenizer counts them from the end: <extra_id_0> is the last token.
    const auto end = std::stable_partition(
        own.added.begin(), own.added.end(),
        [](const auto& token) { return token.text.starts_with("<extra_id_"); });
    std::reverse(own.added.begin(), end);
  }
  own.add_bos = flag(notes.config, "add_bos_token");
  own.add_eos = flag(notes.config, "add_eos_token");
  own.legacy = flag(notes.config, "legacy").value_or(false);
  return load_sentencepiece(file, own);
}

}  // namespace

std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder) {
  const fs::path root(folder);
  if (fs::exists(root / "tokenizer.json")) return load_json(root);
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (fs::exists(root / name)) return load_model(root, root / name);
  }
  const bool is_byte_level = fs::exists(root / "vocab.json") && fs::exists(root / "merges.txt");
  if (is_byte_level || fs::exists(root / "vocab.txt")) return load_json(root);
  throw Error(concat(folder, " holds no tokenizer: neither tokenizer.json, tokenizer.model, ",
                     "spiece.model, vocab.json with merges.txt, nor vocab.txt"));
}

}  // namespace bloomery
