// What a tool did to documents: how many it kept, and of those it dropped how many for which
// reason, with the first ones as samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct SamplePlace {
  std::string file;
  std::uint64_t offset = 0;  // of its line, in the decompressed file; of a row its number
  bool is_row = false;       // of a Parquet file
};

struct DroppedSample : SamplePlace {
  std::string beginning;  // of the text
};

struct TransformReport {
  static constexpr std::size_t kSamples = 3;  // of each reason

  struct Reason {
    std::int64_t count = 0;
    std::vector<DroppedSample> samples;

    void add(const SamplePlace& place, std::string_view text);
    void add(const Reason& next);
  };

  std::int64_t documents = 0, kept = 0, changed = 0;  // changed ones are kept
  std::uint64_t text_bytes = 0, kept_text_bytes = 0;
  std::map<std::string, Reason> dropped;
  Reason bad_lines;  // which are no documents; samples say what is wrong
  // Parts of documents that are kept: lines, paragraphs, characters repaired.
  std::map<std::string, std::int64_t> parts;

  void drop(const std::string& reason, const SamplePlace& place, std::string_view text);
  // Of what follows this; the first samples stay.
  void add(const TransformReport& next);

  // `run`: a JSON value that is kept under that key; empty: none.
  std::string json(const std::string& run = {}) const;
  // An Error says that it is no such report.
  static TransformReport parse(const std::string& json);
  // For people; `what` names the step.
  std::string text(const std::string& what) const;
};

}  // namespace bloomery
