// Documents of files to documents of other files, one output for each input, in order: what
// cleaning, filtering and removing duplicates have in common. Goes on where it was after a kill.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "text/input/json_text.h"
#include "text/lines/line_run.h"
#include "text/transform/transform_outputs.h"

namespace bloomery {

// What became of the lines of a chunk.
struct Transformed : LineCounts {
  std::string kept, dropped;  // bytes for the outputs
  TransformReport report;

  // The line as it is; text becomes an object with the first key.
  void keep(const DocumentLine& line, const std::string& key);
  // With another text under the first key, all else as it is.
  void keep_with(const DocumentLine& line, const std::string& key, std::string_view text);
  void drop(const DocumentLine& line, const std::string& key, const std::string& reason,
            const std::string& file);
};

// Of one thread.
class LineTransform {
 public:
  virtual ~LineTransform() = default;
  virtual void begin_chunk(const LineChunk&) {}
  virtual void apply(const LineChunk& chunk, const DocumentLine& line, Transformed& out) = 0;
};

struct TransformResult {
  bool complete = false;                 // false: a person ended it; it can go on later
  std::vector<TransformReport> reports;  // of each job
  std::vector<std::uint64_t> lines;      // of each input that are not blank

  TransformReport sum() const;
};

// Runs the jobs. Their progress notes stay for TransformOutputs to remove. Inputs without any
// document are an Error, and then no output appears.
TransformResult transform_files(
    const LineOptions& options, const LineCaller& caller, const std::vector<TransformJob>& jobs,
    const TransformSettings& settings,
    const std::function<std::unique_ptr<LineTransform>()>& make_transform);

}  // namespace bloomery
