#include "tokenizer/bpe/gpt2.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/model_tables.h"

namespace bloomery {

void read_merges_txt(std::string_view text, const std::string& name, hf::ModelTables& tables) {
  tables.merges_kind = hf::ModelTables::Kind::array;
  tables.merges_name = name;
  std::int64_t number = 0;
  hf::each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty() || line.starts_with("#version")) return;
    const std::size_t space = line.find(' ');
    check(space != line.npos && space > 0 && space + 1 < line.size() &&
              line.find(' ', space + 1) == line.npos,
          name, ", line ", number, ": '", line, "' is not two tokens with a space between");
    tables.merges.add({line.substr(0, space), line.substr(space + 1), number});
  });
}

std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file) {
  check(!vocab_file.empty() && !merge_file.empty(),
        "GPT2BPETokenizer needs both files: --vocab-file vocab.json --merge-file merges.txt");
  return parse_gpt2(read_file(vocab_file), vocab_file.string(), read_file(merge_file),
                    merge_file.string());
}

std::shared_ptr<const Tokenizer> parse_gpt2(std::string vocabulary, const std::string& vocab_name,
                                            std::string merges, const std::string& merge_name) {
  hf::ModelTables tables;
  tables.unique_ids = true;
  tables.unknown_byte = 0;
  hf::read_vocab_json(std::move(vocabulary), vocab_name, tables);
  check(!tables.vocab.empty(), vocab_name, " is not a vocabulary: its JSON object is empty");
  // The first line is a version, and what follows the last newline should be nothing: Megatron
  // leaves out both, whatever they are.
  merges.resize(merges.rfind('\n') + 1);
  const std::size_t first = merges.find('\n');
  if (first != merges.npos) merges.replace(0, first, "#version");
  read_merges_txt(tables.keep(std::move(merges)), merge_name, tables);
  nlohmann::ordered_json settings = {
      {"model", {{"type", "BPE"}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}}};
  constexpr char kEnd[] = "<|endoftext|>";
  hf::add_known({kEnd}, tables, settings["added_tokens"]);
  return make_hf_tokenizer(JsonFields::of(std::move(settings), vocab_name), tables, vocab_name,
                           {.bos = kEnd, .eos = kEnd, .unk = kEnd, .usual = false});
}

}  // namespace bloomery
