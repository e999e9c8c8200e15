// Texts of test sets cut out of a corpus.
#pragma once

#include <string>
#include <vector>

#include "text/decontaminate/ngram_keys.h"
#include "text/lines/line_options.h"
#include "text/transform/transform_files.h"

namespace bloomery {

struct DecontaminateOptions : LineOptions {
  std::vector<std::string> test_sets;  // JSONL
  std::vector<std::string> test_keys = {"text", "question", "goal"};
  std::string id_prefix = "tests";
  NgramOptions ngrams;

  std::string output;  // a folder
  bool overwrite = false, keep_dropped = false;
};

void describe(OptionTable& table, DecontaminateOptions& options);
// The flags of the rules alone.
void describe(OptionTable& table, NgramOptions& options);

struct DecontaminateSummary {
  TransformReport report;
  std::size_t keys = 0, common_keys = 0;
  bool interrupted = false;
  bool was_finished = false;  // by an earlier run, which knew the keys
};

// Documents with a key become pieces; every piece of every document gets a `split_id`, after an
// older one if it has that: PREFIX-document-piece. `report`: the file for the report.
DecontaminateSummary decontaminate(const DecontaminateOptions& options,
                                   const std::vector<TransformJob>& jobs,
                                   const std::filesystem::path& report, const LineCaller& caller);

}  // namespace bloomery
