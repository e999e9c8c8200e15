#include "tokenizer/load.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "config/option_table.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/bpe/tiktoken.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/null_tokenizer.h"
#include "tokenizer/sentencepiece/model_file.h"
#include "tokenizer/sentencepiece/sentencepiece.h"
#include "tokenizer/utf8.h"
#include "tokenizer/wordpiece/wordpiece.h"

namespace bloomery {
namespace {

using Loaded = std::shared_ptr<const Tokenizer>;

// The file that a type needs, with the option that names it.
const std::string& needed(const TokenizerOptions& options, const std::string& value,
                          const char* option) {
  check(!value.empty(), "--tokenizer-type ", options.type, " needs ", option);
  return value;
}

// Lines, each of which is one piece: printable text without tabs or spaces inside.
bool looks_like_vocab_txt(std::string_view text) {
  if (!is_utf8(text)) return false;
  const std::string_view beginning = text.substr(0, 65536);
  return beginning.find('\n') != beginning.npos && beginning.find('\0') == beginning.npos &&
         (beginning.find("[UNK]") != beginning.npos || beginning.find(' ') == beginning.npos);
}

bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

Loaded load_file(const TokenizerOptions& options) {
  const FileText file(options.path);
  const std::string_view text = file;
  check(!text.empty(), options.path, " is empty; it should be a tokenizer");
  if (looks_like_json(text)) return read_hf_tokenizer(text, options.path);
  if (looks_like_tiktoken(text.substr(0, 4096))) {
    return parse_tiktoken(text, options.path, options.pattern);
  }
  if (looks_like_sentencepiece(text)) {
    return parse_sentencepiece_tokenizer(text, options.path, SentencePieceKind::plain);
  }
  if (looks_like_vocab_txt(text)) return parse_wordpiece(std::string(text), options.path);
  throw Error(concat(options.path, " is not a supported tokenizer: neither a tokenizer.json",
                     ", a SentencePiece model, a tiktoken file nor a vocab.txt"));
}

Loaded load_path(const TokenizerOptions& options) {
  check(std::filesystem::exists(options.path), "--tokenizer ", options.path,
        " does not exist; give a tokenizer's file or folder. `bloomery tokenizer train` makes one");
  if (std::filesystem::is_directory(options.path)) return load_hf_folder(options.path);
  return load_file(options);
}

Loaded load_type(const TokenizerOptions& options) {
  const std::string& type = options.type;
  if (type == "NullTokenizer") return make_null_tokenizer(options.vocab_size);
  if (type == "GPT2BPETokenizer") {
    const std::string& vocab = needed(options, options.vocab_file, "--vocab-file");
    return load_gpt2(vocab, needed(options, options.merge_file, "--merge-file"));
  }
  if (type == "BertWordPieceLowerCase" || type == "BertWordPieceCase") {
    return load_wordpiece(
        needed(options, options.vocab_file, "--vocab-file"),
        megatron_wordpiece(type == "BertWordPieceLowerCase", options.vocab_extra_ids));
  }
  const std::string& model = needed(options, options.tokenizer_model, "--tokenizer-model");
  if (type == "TikTokenizer") return load_tiktoken(model, options.pattern);
  if (type == "SentencePieceTokenizer") {
    return load_sentencepiece(model, SentencePieceKind::megatron, options.vocab_extra_ids);
  }
  if (type == "GPTSentencePieceTokenizer" || type == "Llama2Tokenizer") {
    return load_sentencepiece(model, SentencePieceKind::plain);
  }
  check(type == "HFTokenizer", "--tokenizer-type ", type, " is not known");
  TokenizerOptions by_path = options;
  by_path.path = model;
  return load_path(by_path);
}

}  // namespace

void describe(OptionTable& table, TokenizerOptions& options) {
  table.section("tokenizer");
  table.add("tokenizer", options.path,
            "Tokenizer: a tokenizer.json, a Hugging Face folder, a SentencePiece model, a tiktoken "
            "file or a vocab.txt, recognized by content.");
  table.add_choice("tokenizer-type", options.type,
                   "Tokenizer type, as in Megatron; needs the type's files.",
                   {"GPT2BPETokenizer", "BertWordPieceLowerCase", "BertWordPieceCase",
                    "SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer",
                    "HFTokenizer", "TikTokenizer", "NullTokenizer"});
  table
      .add("vocab-file", options.vocab_file,
           "Vocabulary: GPT-2's vocab.json, or vocab.txt of BERT types.")
      .alias("vocab");
  table.add("merge-file", options.merge_file, "Merges of GPT2BPETokenizer: merges.txt.");
  table.add("tokenizer-model", options.tokenizer_model,
            "File or folder of the SentencePiece, HFTokenizer and TikTokenizer types.");
  table.add("vocab-size", options.vocab_size, "Vocabulary size of NullTokenizer.", at_least(0));
  table.add("vocab-extra-ids", options.vocab_extra_ids,
            "Number of <extra_id_N> tokens added to BERT and SentencePiece types.",
            between(0, 1e6));
  table
      .add("pattern", options.pattern,
           "Split pattern of a tiktoken file (gpt2, cl100k, o200k, ...); by default known from its "
           "size.")
      .alias("tiktoken-pattern");
}

bool names_tokenizer(const TokenizerOptions& options) {
  return !options.path.empty() || !options.type.empty() || !options.vocab_file.empty() ||
         !options.merge_file.empty() || !options.tokenizer_model.empty();
}

std::shared_ptr<const Tokenizer> load_tokenizer(const TokenizerOptions& options) {
  check(options.path.empty() || options.type.empty(), "--tokenizer ", options.path,
        " and --tokenizer-type ", options.type, " both name a tokenizer; give one of them");
  if (!options.path.empty()) return load_path(options);
  check(!options.type.empty(),
        "no tokenizer is named; give --tokenizer PATH (`bloomery tokenizer train` makes one), or "
        "--tokenizer-type with its files");
  return load_type(options);
}

EncodeOptions text_encoding(const TokenizerOptions& options) {
  const std::string& type = options.type;
  return {.add_special_tokens = type.empty() || type == "HFTokenizer" || type == "Llama2Tokenizer",
          .parse_special = type != "GPT2BPETokenizer",
          .is_prompt = true};
}

}  // namespace bloomery
