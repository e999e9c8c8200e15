#include "text/transform/transform_files.h"

#include <algorithm>

#include "base/error.h"
#include "text/parquet/parquet_file.h"
#include "text/transform/resumable_files.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kBytesBetweenSaves = 32 << 20;

// One input on its way to its outputs.
class Job {
 public:
  Job(const TransformJob& job, const TransformSettings& settings, LineReaderOptions how,
      const std::atomic<bool>* stop, std::size_t number)
      : files_(job.outputs(), settings.text + "\ninput: " + input_identity(job.input),
               settings.overwrite),
        has_dropped_(!job.dropped.empty()),
        progress_(files_.progress()) {
    how.first_file = number;
    how.number_lines = true;
    how.begin = progress_.offset;
    how.first_line = progress_.line;
    if (how.begin > 0) how.format = progress_.jsonl ? LineFormat::jsonl : LineFormat::text;
    reader_ = std::make_unique<LineReader>(std::vector{job.input}, how, stop);
  }

  bool done() const { return progress_.done; }
  const FileProgress& progress() const { return progress_; }
  ChunkSource& source() { return *reader_; }

  void take(const LineChunk& chunk, const Transformed& result) {
    files_.append(0, result.kept);
    if (has_dropped_) files_.append(1, result.dropped);
    progress_.report.add(result.report);
    progress_.line = chunk.first_line + static_cast<std::uint64_t>(result.lines + result.bad_lines);
    progress_.jsonl = chunk.format != LineFormat::text;
    if (chunk.overlong_bytes > 0) return;  // the file may end here, before the line does
    progress_.offset = chunk.end;
    bytes_since_save_ += chunk.used;
    if (bytes_since_save_ < kBytesBetweenSaves) return;
    files_.save(progress_);
    bytes_since_save_ = 0;
  }
  void finish() {
    progress_.done = true;
    files_.save(progress_);
  }
  void discard() { files_.discard(); }

 private:
  ResumableFiles files_;
  const bool has_dropped_;
  FileProgress progress_;
  std::uint64_t bytes_since_save_ = 0;
  std::unique_ptr<LineReader> reader_;
};

void transform_chunk(LineTransform& transform, DocumentLines& lines, const LineChunk& chunk,
                     const std::string& file, Transformed& out) {
  constexpr std::size_t kLargestKept = 8 << 20;  // so that a long document holds no memory for ever
  static_cast<LineCounts&>(out) = {};
  out.report = {};
  for (std::string* text : {&out.kept, &out.dropped}) {
    if (text->capacity() > kLargestKept) *text = std::string();
    text->clear();
  }
  transform.begin_chunk(chunk);
  lines.for_each(chunk, [&](const DocumentLine& line) {
    out.add(chunk, line);
    if (!line.fault.empty())
      return out.report.bad_lines.add({file, line.offset, line.is_row}, line.fault);
    ++out.report.documents;
    out.report.text_bytes += line.texts[0].size();
    transform.apply(chunk, line, out);
  });
}

// Inputs without a document are a mistake: a wrong file, or a wrong key. Outputs of single inputs
// without one wait for this before they appear.
void finish_empty_ones(const std::vector<std::unique_ptr<Job>>& jobs, const TransformReport& sum,
                       const std::vector<std::string>& files) {
  if (sum.documents == 0) {
    for (const auto& job : jobs) job->discard();
    std::string names = shown_name(files[0]);
    if (files.size() > 1) names += concat(" and ", files.size() - 1, " more");
    check(sum.bad_lines.count > 0, names, ": no line, so no document; nothing was written");
    const DroppedSample& first = sum.bad_lines.samples[0];
    throw Error(concat(
        names, ": no document in ", sum.bad_lines.count, " lines (the first: ", first.beginning,
        "); --input-format and --json-keys say what a line is; ", "nothing was written"));
  }
  for (const auto& job : jobs) {
    if (!job->done()) job->finish();
  }
}

}  // namespace

void Transformed::keep_with(const DocumentLine& line, const std::string& key,
                            std::string_view text) {
  if (line.tokens.empty()) {
    kept += '{';
    append_json_string(kept, key);
    kept += ": ";
    append_json_string(kept, text);
    kept += '}';
  } else {
    const auto begin = static_cast<std::size_t>(line.tokens[0].data() - line.raw.data());
    kept += line.raw.substr(0, begin);
    append_json_string(kept, text);
    kept += line.raw.substr(begin + line.tokens[0].size());
  }
  kept += '\n';
  ++report.kept;
  report.kept_text_bytes += text.size();
}

void Transformed::keep(const DocumentLine& line, const std::string& key) {
  if (line.tokens.empty()) return keep_with(line, key, line.texts[0]);
  kept += line.raw;
  kept += '\n';
  ++report.kept;
  report.kept_text_bytes += line.texts[0].size();
}

void Transformed::drop(const DocumentLine& line, const std::string& key, const std::string& reason,
                       const std::string& file) {
  report.drop(reason, {file, line.offset, line.is_row}, line.texts[0]);
  if (line.tokens.empty()) {
    dropped += '{';
    append_json_string(dropped, key);
    dropped += ": ";
    append_json_string(dropped, line.texts[0]);
    dropped += "}\n";
  } else {
    dropped += line.raw;
    dropped += '\n';
  }
}

TransformReport TransformResult::sum() const {
  TransformReport all;
  for (const TransformReport& report : reports) all.add(report);
  return all;
}

TransformResult transform_files(
    const LineOptions& options, const LineCaller& caller, const std::vector<TransformJob>& jobs,
    const TransformSettings& settings,
    const std::function<std::unique_ptr<LineTransform>()>& make_transform) {
  std::vector<std::string> files;
  for (const TransformJob& job : jobs) files.push_back(job.input);
  LineRun run(options, caller, files);
  std::vector<std::unique_ptr<Job>> all;
  std::vector<Job*> open;
  std::vector<ChunkSource*> streams;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    all.push_back(std::make_unique<Job>(jobs[i], settings, run.reader_options(), run.stop(), i));
    if (all.back()->done()) continue;
    if (all.back()->progress().offset > 0) {
      caller.messages << "going on with " << jobs[i].input << " at "
                      << line_place(all.back()->progress().offset, is_parquet(jobs[i].input))
                      << '\n';
    }
    open.push_back(all.back().get());
    streams.push_back(&all.back()->source());
  }
  if (open.size() < jobs.size()) {
    caller.messages << jobs.size() - open.size() << " files are finished already\n";
  }
  TransformResult result;
  result.complete = run.run<Transformed>(
      streams,
      [&](std::size_t) {
        return [&, transform = std::shared_ptr<LineTransform>(make_transform()),
                lines = std::make_shared<DocumentLines>(
                    options.json_keys, static_cast<std::size_t>(options.max_document_bytes))](
                   const LineChunk& chunk, Transformed& out) {
          transform_chunk(*transform, *lines, chunk, shown_name(files[chunk.file]), out);
        };
      },
      [&](std::size_t stream, const LineChunk& chunk, const Transformed& out) {
        open[stream]->take(chunk, out);
      },
      [&](std::size_t stream) {
        if (open[stream]->progress().report.documents > 0) open[stream]->finish();
      },
      num_workers(options));
  run.progress().finish();
  for (const auto& job : all) {
    result.reports.push_back(job->progress().report);
    result.lines.push_back(job->progress().line);
  }
  if (result.complete) finish_empty_ones(all, result.sum(), files);
  return result;
}

}  // namespace bloomery
