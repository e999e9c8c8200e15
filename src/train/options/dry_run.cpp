#include "train/options/dry_run.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGpt2Vocabulary = 50257, kLlamaVocabulary = 32000;

bool is_number(const std::string& word) {
  char* end = nullptr;
  std::strtod(word.c_str(), &end);
  return !word.empty() && *end == '\0';
}

bool has_files(const TokenizerOptions& o) {
  bool any = false;
  for (const std::string* path : {&o.path, &o.vocab_file, &o.merge_file, &o.tokenizer_model}) {
    if (!path->empty()) {
      any = true;
      if (!std::filesystem::exists(*path)) {
        return false;
      }
    }
  }
  return any;
}

}  // namespace

VocabularySize vocabulary_size(const TokenizerOptions& o) {
  if (o.type == "NullTokenizer" || has_files(o)) {
    return {load_tokenizer(o)->vocab_size(), false};
  }
  const bool like_llama =
      o.type.find("SentencePiece") != o.type.npos || o.type == "Llama2Tokenizer";
  return {like_llama ? kLlamaVocabulary : kGpt2Vocabulary, true};
}

std::vector<std::string> missing_paths(const PretrainOptions& o) {
  std::vector<std::string> lines;
  const auto look = [&](const char* flag, const std::string& path, const std::string& ending = "") {
    if (!path.empty() && !std::filesystem::exists(path + ending)) {
      lines.push_back(concat(flag, ": ", path, ending, " does not exist"));
    }
  };
  const auto look_at_corpora = [&](const char* flag, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool weight = words.size() > 1 && i % 2 == 0 && is_number(words[i]);
      if (!weight) {
        look(flag, words[i], ".bin");
        look(flag, words[i], ".idx");
      }
    }
  };
  look_at_corpora("--data-path", o.data.data_path);
  look_at_corpora("--train-data-path", o.data.train_data_path);
  look_at_corpora("--valid-data-path", o.data.valid_data_path);
  look_at_corpora("--test-data-path", o.data.test_data_path);
  look("--tokenizer", o.tokenizer.path);
  look("--vocab-file", o.tokenizer.vocab_file);
  look("--merge-file", o.tokenizer.merge_file);
  look("--tokenizer-model", o.tokenizer.tokenizer_model);
  look("--load", o.checkpoint.load);
  return lines;
}

void print_dry_run(const OptionTable& table, const PretrainOptions& options,
                   const std::vector<std::string>& notes, std::ostream& out) {
  const VocabularySize vocabulary = vocabulary_size(options.tokenizer);
  out << table.text() << '\n' << to_text(make_plan(options, vocabulary.size));
  std::vector<std::string> warnings = missing_paths(options);
  if (vocabulary.assumed) {
    warnings.push_back(concat("the tokenizer's files are not here: a vocabulary of ",
                              vocabulary.size, " tokens is assumed"));
  }
  for (const auto& [title, lines] : {std::pair{"notes", notes}, std::pair{"warnings", warnings}}) {
    if (!lines.empty()) {
      out << '\n' << title << ":\n";
    }
    for (const std::string& line : lines) {
      out << "  " << line << '\n';
    }
  }
}

}  // namespace bloomery
