// What becomes an index of passages, and how: the options that `retrieve index` shares with the
// tasks which make one first.
#pragma once

#include <string>

#include "config/option_table.h"
#include "retrieve/passage_index.h"

namespace bloomery {

struct IndexChoice {
  std::string evidence;           // a TSV of passages, or
  std::string data_path, titles;  // a corpus of sentences and its titles
  bool one_sentence = false;
  std::string index;  // the file
  std::int64_t seq_length = 0, batch_size = 128, log_interval = 1000;

  bool names_passages() const { return !evidence.empty() || !data_path.empty(); }
};
void describe_index(OptionTable& table, IndexChoice& options);
// What is missing or contradictory of the passages.
std::vector<std::string> problems(const IndexChoice& options);

// Writes the index, and says how far it is.
std::int64_t make_index(const IndexChoice& options, LoadedModel& model, TextVectors& vectors);

// Warns of an index that another checkpoint made.
void note_other_model(const PassageIndex& index, const LoadedModel& model);

}  // namespace bloomery
