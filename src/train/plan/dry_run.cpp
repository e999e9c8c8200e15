#include "train/plan/dry_run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/timeline.h"
#include "samples/datasets.h"
#include "train/plan/read_pretrain.h"

namespace bloomery {
namespace {

constexpr std::int64_t kBytePairVocabulary = 50257, kSentencePieceVocabulary = 32000;

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

// Why the run could not save where it is told to; empty: it could.
std::string refused_save(const CheckpointFlags& o) {
  const bool goes_on = !o.finetune && !o.reset_iteration;
  return o.save.empty() || o.fork ? "" : foreseen_refusal(o.save, goes_on ? o.load : "");
}

}  // namespace

VocabularySize vocabulary_size(const TokenizerOptions& o) {
  if (o.type == "NullTokenizer" || has_files(o)) {
    return {load_tokenizer(o)->vocab_size(), false};
  }
  const bool sentence_pieces =
      o.type.find("SentencePiece") != o.type.npos || o.type == "Llama2Tokenizer";
  return {sentence_pieces ? kSentencePieceVocabulary : kBytePairVocabulary, true};
}

std::vector<std::string> missing_paths(const PretrainOptions& o) {
  std::vector<std::string> lines;
  const auto look = [&](const char* flag, const std::string& path) {
    if (!path.empty() && !std::filesystem::exists(path)) {
      lines.push_back(concat(flag, ": ", path, " does not exist"));
    }
  };
  if (o.instruct.enabled) {
    for (const std::string& file : o.data.data_path) look("--data-path", file);
    for (const std::string& file : o.data.train_data_path) look("--train-data-path", file);
    for (const std::string& file : o.data.valid_data_path) look("--valid-data-path", file);
    for (const std::string& file : o.data.test_data_path) look("--test-data-path", file);
  } else {
    lines = missing_corpora(o.data);
  }
  for (const std::string& path : o.task.train_data) look("--train-data", path);
  for (const std::string& path : o.task.valid_data) look("--valid-data", path);
  look("--pretrained-checkpoint", o.checkpoint.start);
  look("--tokenizer", o.tokenizer.path);
  look("--vocab-file", o.tokenizer.vocab_file);
  look("--merge-file", o.tokenizer.merge_file);
  look("--tokenizer-model", o.tokenizer.tokenizer_model);
  if (const std::string problem = missing_load(o.checkpoint); !problem.empty()) {
    lines.push_back(problem);
  }
  look("--load-teacher", o.distillation.load);
  return lines;
}

void print_dry_run(const OptionTable& table, const PretrainOptions& options,
                   const std::vector<std::string>& notes, DeviceKind device, std::ostream& out) {
  const VocabularySize vocabulary = vocabulary_size(options.tokenizer);
  const Plan plan = make_plan(options, vocabulary.size);
  const PlannedMemory memory = plan_memory(plan, sample_fields(options), device);
  std::vector<std::string> warnings = missing_paths(options);
  // Sentences and instructions are padded.
  if (!sample_kind(options).of_sentences && !options.instruct.enabled) {
    std::ranges::move(short_splits(options.data), std::back_inserter(warnings));
  }
  if (vocabulary.assumed) {
    warnings.push_back(concat("the tokenizer's files are not here: a vocabulary of ",
                              vocabulary.size, " tokens is assumed"));
  }
  if (const std::string refusal = refused_save(options.checkpoint); !refusal.empty()) {
    warnings.push_back(refusal);
  }
  if (options.dry_run_json) {
    using Json = nlohmann::ordered_json;
    out << Json{{"plan", Json::parse(to_json(plan, memory))},
                {"warnings", warnings},
                {"notes", notes},
                {"options", Json::parse(table.json())}}
               .dump(2)
        << '\n';
    return;
  }
  out << to_text(plan, memory);
  for (const auto& [title, lines] : {std::pair{"warnings", warnings}, std::pair{"notes", notes}}) {
    if (!lines.empty()) {
      out << '\n' << title << ":\n";
    }
    for (const std::string& line : lines) {
      out << "  " << line << '\n';
    }
  }
  out << '\n' << table.text();
}

}  // namespace bloomery
