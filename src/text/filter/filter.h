// Steps that clean documents or drop them, in one pass over a corpus; every step says what it
// dropped and why.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "text/lines/line_options.h"
#include "text/transform/transform_files.h"

namespace bloomery {

struct FilterOptions : LineOptions {
  std::string url_key;  // empty: URLs are not looked at
  bool openwebtext_urls = false;
  std::string blocked_domains;  // a file
  bool repair = false, join_lines = false;
  std::int64_t min_characters = 0, max_characters = 0;  // 0: no limit
  std::vector<std::string> languages;                   // empty: all
  std::vector<std::string> rules;

  std::string output;  // a folder
  bool overwrite = false, keep_dropped = false;
};

// The options of `data clean` and `data filter`.
void describe_clean(OptionTable& table, FilterOptions& options);
void describe_filter(OptionTable& table, FilterOptions& options);
std::vector<std::string> problems(const FilterOptions& options);

// One step: changes the text, or says why the document is dropped.
using FilterStep = std::function<std::string(std::string& text, StepReport& report)>;

// The steps in their order; made once for each thread.
std::vector<FilterStep> filter_steps(const FilterOptions& options);

struct FilterSummary {
  StepReport report;
  bool interrupted = false;
  bool was_finished = false;  // by an earlier run
};

// `name` is the command's, for the record of what a run was begun with.
FilterSummary filter(const FilterOptions& options, const std::string& name,
                     const LineCaller& caller);

// A pass with steps of the caller's own over jobs of its own.
std::unique_ptr<LineTransform> make_filter_transform(std::vector<FilterStep> steps,
                                                     const std::string& key,
                                                     const std::vector<std::string>& files);

// "  " and line breaks behind words become one space: general_cleaning of Megatron's tools.
bool join_lines(std::string& text);

}  // namespace bloomery
