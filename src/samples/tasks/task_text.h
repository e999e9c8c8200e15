// Texts of tasks, cleaned as Megatron cleans them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samples/tasks/task_kind.h"

namespace bloomery {

// Runs of white space become a space, and " . " becomes ". ", three times over.
std::string clean_text(std::string_view text);

// The lines of a text as Python's text files have them: \n, \r\n and \r end one.
std::vector<std::string_view> python_lines(std::string_view text);

// A row of a GLUE file.
struct GlueRow {
  std::string first;
  std::optional<std::string> second;
  std::int64_t uid = 0;
  std::int32_t label = 0;  // of classes
  float score = 0;         // of a number
};

struct GlueFile {
  std::vector<GlueRow> rows;
  bool labelled = true;            // else all rows have the first class, or 0
  std::vector<std::string> notes;  // what was left out
};

// Rows of another number of columns, or without a text, are left out with a note; of MNLI, which
// has none, they are an Error, as is a label that the task does not have. Errors name file and
// line.
GlueFile read_glue(const TaskKind& task, const std::string& path);

// A passage of RACE and what is asked about it.
struct RaceQuestion {
  std::vector<std::string> choices;  // question and answer, TaskKind::kChoices of them
  std::int32_t right = 0;
};
struct RacePassage {
  std::string article;
  std::vector<RaceQuestion> questions;
};

// The *.txt of a folder in the order of their names, a JSON object in each line.
std::vector<RacePassage> read_race(const std::string& folder);

}  // namespace bloomery
