#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/hf/folder_notes.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/sentencepiece/sentencepiece.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Notes {
  json config, added;
  SpecialTokenNames names;
};

template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
  }
}

std::string read_text(const fs::path& path) {
  std::string text = read_file(path);
  check(is_utf8(text), path.string(), " is not UTF-8");
  return text;
}

// Special tokens by the names that files of these kinds usually have, where the notes name none.
void add_usual(std::initializer_list<const char*> names, const json& vocab, Notes& notes) {
  for (const char* name : names) {
    if (vocab.contains(name)) notes.added.push_back({{"content", name}, {"special", true}});
  }
}

// vocab.json and merges.txt, as of GPT-2 and RoBERTa.
json byte_level_json(const fs::path& folder, Notes& notes) {
  json vocab = parse_tokenizer_json(read_text(folder / "vocab.json"), "vocab.json");
  json merges = json::array();
  each_line(read_text(folder / "merges.txt"), [&](std::string_view line) {
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
  });
  add_usual({"<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>"}, vocab, notes);
  if (vocab.contains("<|endoftext|>") && !vocab.contains("<s>")) {  // GPT-2's, for everything
    for (std::string* name : {&notes.names.bos, &notes.names.eos, &notes.names.unk}) {
      if (name->empty()) *name = "<|endoftext|>";
    }
  }
  const bool prefix = notes.config.value("add_prefix_space", json(false)) == json(true);
  json root = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", prefix}}},
               {"decoder", {{"type", "ByteLevel"}}}};
  root["model"]["type"] = "BPE";
  root["model"]["vocab"] = std::move(vocab);  // an initializer would copy them
  root["model"]["merges"] = std::move(merges);
  return root;
}

// vocab.txt, as of BERT. Without a word about it, a vocabulary without capital letters is for
// lowercased text.
json word_piece_json(const fs::path& folder, Notes& notes) {
  json vocab = json::object();
  std::uint64_t count = 0;
  each_line(read_text(folder / "vocab.txt"), [&](std::string_view line) { vocab[line] = count++; });
  add_usual({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, vocab, notes);
  const auto setting = [&](const char* name, const json& otherwise) {
    return notes.config.contains(name) ? notes.config[name] : otherwise;
  };
  json root = {{"normalizer",
                {{"type", "BertNormalizer"},
                 {"clean_text", true},
                 {"handle_chinese_chars", setting("tokenize_chinese_chars", true)},
                 {"strip_accents", setting("strip_accents", nullptr)},
                 {"lowercase", setting("do_lower_case", !vocab.contains("A"))}}},
               {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
               {"decoder", {{"type", "WordPiece"}}}};
  if (vocab.contains("[CLS]") && vocab.contains("[SEP]")) {
    root["post_processor"] = {{"type", "BertProcessing"},
                              {"cls", json::array({"[CLS]", vocab["[CLS]"]})},
                              {"sep", json::array({"[SEP]", vocab["[SEP]"]})}};
  }
  root["model"]["type"] = "WordPiece";
  root["model"]["vocab"] = std::move(vocab);  // an initializer would copy it
  return root;
}

std::shared_ptr<const Tokenizer> load_json(const fs::path& folder) {
  Notes notes;
  notes.names = hf::read_folder_notes(folder, notes.config, notes.added);
  json root;
  if (const fs::path file = folder / "tokenizer.json"; fs::exists(file)) {
    root = parse_tokenizer_json(read_file(file), file.string());
  } else if (fs::exists(folder / "merges.txt")) {
    root = byte_level_json(folder, notes);
  } else {
    root = word_piece_json(folder, notes);
  }
  hf::add_tokens(notes.added, root);
  return make_hf_tokenizer(root, folder.string(), notes.names);
}

}  // namespace

std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder) {
  const fs::path root(folder);
  if (fs::exists(root / "tokenizer.json")) return load_json(root);
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (fs::exists(root / name)) return load_sentencepiece(root / name, SentencePieceKind::plain);
  }
  const bool is_byte_level = fs::exists(root / "vocab.json") && fs::exists(root / "merges.txt");
  if (is_byte_level || fs::exists(root / "vocab.txt")) return load_json(root);
  throw Error(concat(folder, " holds no tokenizer: neither tokenizer.json, tokenizer.model, ",
                     "spiece.model, vocab.json with merges.txt, nor vocab.txt"));
}

}  // namespace bloomery
