#include "text/decontaminate/decontaminate.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "config/option_table.h"
#include "text/input/byte_source.h"
#include "text/input/input_files.h"

namespace bloomery {
namespace {

// Strings under the keys, wherever they stand: also in objects and arrays inside.
void add_strings(const nlohmann::json& value, bool wanted, const std::vector<std::string>& keys,
                 NgramKeys& to) {
  if (value.is_string() && wanted) {
    to.add_text(value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    for (const nlohmann::json& entry : value) add_strings(entry, wanted, keys, to);
  } else if (value.is_object()) {
    for (const auto& [name, entry] : value.items()) {
      const bool named = std::ranges::find(keys, name) != keys.end();
      add_strings(entry, wanted || named, keys, to);
    }
  }
}

void read_test_set(const std::string& path, const std::vector<std::string>& keys, NgramKeys& to) {
  const std::size_t before = to.size();
  LineReader reader({path}, {.format = LineFormat::jsonl});
  LineChunk chunk;
  while (reader.next(chunk)) {
    const std::string_view text = chunk.bytes();
    const bool is_row = chunk.format == LineFormat::parquet;
    std::uint64_t row = chunk.offset;
    for (std::size_t at = 0; at < text.size();) {
      const std::uint64_t offset = is_row ? row++ : chunk.offset + at;
      const std::string_view line = next_line(text, at);
      if (is_blank(line)) continue;
      check_json_depth(line);
      const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
      check(!entry.is_discarded(), "--test-sets ", path, ", ", line_place(offset, is_row),
            ": not valid JSON");
      add_strings(entry, false, keys, to);
    }
  }
  check(to.size() > before, "--test-sets ", path,
        " has no text of enough words under --test-keys; name the keys of its texts");
}

struct ChunkKeys : LineCounts {
  std::vector<std::size_t> keys;
};

class DecontaminateTransform : public LineTransform {
 public:
  DecontaminateTransform(const DecontaminateOptions& options, const NgramKeys& keys,
                         const std::vector<std::string>& files)
      : options_(options), keys_(keys), files_(files), old_id_({"split_id"}) {}

  void apply(const LineChunk& chunk, const DocumentLine& line, Transformed& out) override {
    const std::vector<std::string> pieces = keys_.pieces(line.texts[0]);
    const std::string file = shown_name(files_[chunk.file]);
    if (pieces.empty())
      return out.drop(line, key(), "nothing long enough beside a test text", file);
    if (static_cast<std::int64_t>(pieces.size()) > options_.ngrams.splits_count) {
      return out.drop(line, key(), "in too many pieces", file);
    }
    const bool changed = pieces.size() > 1 || pieces[0].size() < line.texts[0].size();
    if (changed) {
      ++out.report.changed;
      out.report.parts["pieces of documents that were cut"] +=
          static_cast<std::int64_t>(pieces.size());
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Transformed one;
      one.keep_with(line, key(), pieces[i]);
      add_id(one.kept, line.number + 1, i);
      out.kept += one.kept;
      out.report.kept_text_bytes += pieces[i].size();
    }
    ++out.report.kept;
  }

 private:
  const std::string& key() const { return options_.json_keys[0]; }

  // `object` is a line: its id is replaced, or put at its end.
  void add_id(std::string& object, std::uint64_t document, std::size_t piece) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "-%010llu-%04llu",
                  static_cast<unsigned long long>(document),
                  static_cast<unsigned long long>(piece));
    const std::string id = options_.id_prefix + numbers;
    std::string quoted;
    if (old_id_.parse(object)) {
      append_json_string(quoted, concat(old_id_.text(0), "-", id));
      const auto at = static_cast<std::size_t>(old_id_.token(0).data() - object.data());
      object.replace(at, old_id_.token(0).size(), quoted);
      return;
    }
    append_json_string(quoted, id);
    object.insert(object.rfind('}'), ", \"split_id\": " + quoted);
  }

  const DecontaminateOptions& options_;
  const NgramKeys& keys_;
  const std::vector<std::string>& files_;
  JsonLineParser old_id_;
};

// In how many documents each key is; false when a person ended it.
bool count_keys(const DecontaminateOptions& options, const std::vector<std::string>& files,
                const NgramKeys& keys, const LineCaller& caller,
                std::vector<std::int64_t>& counts) {
  LineRun run(options, caller, files);
  LineReader reader(files, run.reader_options(), run.stop());
  counts.assign(keys.size(), 0);
  const bool complete = run.run<ChunkKeys>(
      {&reader},
      [&](std::size_t) {
        return [&, lines = std::make_shared<DocumentLines>(
                       options.json_keys, static_cast<std::size_t>(options.max_document_bytes))](
                   const LineChunk& chunk, ChunkKeys& out) {
          out = {};
          lines->for_each(chunk, [&](const DocumentLine& line) {
            out.add(chunk, line);
            if (!line.fault.empty()) return;
            const std::vector<std::size_t> found = keys.in_text(line.texts[0]);
            out.keys.insert(out.keys.end(), found.begin(), found.end());
          });
        };
      },
      [&](std::size_t, const LineChunk&, const ChunkKeys& found) {
        for (const std::size_t key : found.keys) ++counts[key];
      });
  run.progress().finish();
  return complete;
}

std::string settings_text(const DecontaminateOptions& o) {
  const NgramOptions& n = o.ngrams;
  std::string text =
      concat("decontaminate ", n.min_ngram_size, " to ", n.max_ngram_size, " words, ",
             n.filter_text_char_len, ", ", n.key_threshold, ", ", n.splits_count, ", ",
             n.remove_char_each_side, ", ", o.id_prefix, ", key ", o.json_keys[0], ", format ",
             static_cast<int>(o.input_format), ", longest ", o.max_document_bytes, ", dropped ",
             o.keep_dropped, ", tests");
  for (const std::string& file : o.test_sets) text += " " + input_identity(file);
  text += ", test keys";
  for (const std::string& key : o.test_keys) text += " " + key;
  return text;
}

}  // namespace

void describe(OptionTable& t, NgramOptions& o) {
  t.add("max-ngram-size", o.max_ngram_size, "Words per n-gram.", between(1, 1000));
  t.add("min-ngram-size", o.min_ngram_size, "Skip test texts with fewer words.", between(1, 1000));
  t.add("filter-text-char-len", o.filter_text_char_len,
        "Drop pieces of a split document of at most this many characters.", at_least(0));
  t.add("key-threshold", o.key_threshold,
        "Keep n-grams that occur in at least this many documents: they are common phrases.",
        at_least(1));
  t.add("splits-count", o.splits_count, "Drop documents split into more pieces than this.",
        at_least(1));
  t.add("remove-char-each-side", o.remove_char_each_side,
        "Characters removed on each side of a match, up to the end of the sentence.", at_least(0));
}

void describe(OptionTable& t, DecontaminateOptions& o) {
  describe_lines(t, o, "JSON key of the text.");
  t.section("test sets");
  t.add("test-sets", o.test_sets, "Test sets, JSONL files.").required();
  t.add("test-keys", o.test_keys, "JSON keys of the test sets' texts, at any depth.");
  describe(t, o.ngrams);
  t.section("output");
  t.add("output", o.output, "Output folder for NAME.jsonl of each input and report.json.")
      .required();
  t.add("id-prefix", o.id_prefix, "Prefix of the split_id of pieces.");
  t.add("keep-dropped", o.keep_dropped, "Write dropped documents to NAME.dropped.jsonl.");
  t.add("overwrite", o.overwrite,
        "Replace existing output and start over. Without it an interrupted run continues.");
  t.section("running");
  describe_workers(t, o);
}

DecontaminateSummary decontaminate(const DecontaminateOptions& options,
                                   const std::vector<TransformJob>& jobs,
                                   const std::filesystem::path& report, const LineCaller& caller) {
  for (const TransformJob& job : jobs) {
    check(job.input != "-",
          "the input is read twice, so it cannot be standard input; write it to a file first");
  }
  const TransformOutputs outputs(jobs, report, {settings_text(options), options.overwrite});
  if (const auto earlier = outputs.finished()) return {.report = *earlier, .was_finished = true};
  DecontaminateSummary summary;
  NgramKeys keys(options.ngrams);
  for (const std::string& file : options.test_sets) read_test_set(file, options.test_keys, keys);
  summary.keys = keys.size();
  std::vector<std::string> files;
  for (const TransformJob& job : jobs) files.push_back(job.input);
  std::vector<std::int64_t> counts;
  if (!count_keys(options, files, keys, caller, counts)) {
    summary.interrupted = true;
    return summary;
  }
  keys.remove_common(counts);
  summary.common_keys = summary.keys - keys.size();
  const TransformResult result = transform_files(options, caller, jobs, outputs.settings(), [&] {
    return std::make_unique<DecontaminateTransform>(options, keys, files);
  });
  summary.interrupted = !result.complete;
  summary.report = result.sum();
  if (result.complete) outputs.finish(summary.report);
  return summary;
}

}  // namespace bloomery
