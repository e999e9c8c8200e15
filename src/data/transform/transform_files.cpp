#include "data/transform/transform_files.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/transform/resumable_files.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytesBetweenSaves = 32 << 20;

// "a.jsonl 1234 bytes, changed at 99": what tells an input from another of the same name.
std::string identity(const std::string& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return file;
  const auto time = fs::last_write_time(file, error).time_since_epoch().count();
  return concat(file, " ", size, " bytes, changed at ", time);
}

std::vector<fs::path> outputs(const TransformJob& job) {
  if (job.dropped.empty()) return {job.kept};
  return {job.kept, job.dropped};
}

// One input on its way to its outputs.
class Job {
 public:
  Job(const TransformJob& job, const TransformSettings& settings, LineReaderOptions how,
      const std::atomic<bool>* stop, std::size_t number)
      : files_(outputs(job), settings.text + "\ninput: " + identity(job.input), settings.overwrite),
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
    progress_.jsonl = chunk.format == LineFormat::jsonl;
    if (chunk.overlong_bytes > 0) return;  // the file may end here, before the line does
    progress_.offset = chunk.offset + chunk.used;
    if (progress_.offset - files_.progress().offset >= kBytesBetweenSaves) files_.save(progress_);
  }
  void finish() {
    progress_.done = true;
    files_.save(progress_);
  }

 private:
  ResumableFiles files_;
  const bool has_dropped_;
  FileProgress progress_;
  std::unique_ptr<LineReader> reader_;
};

void transform_chunk(LineTransform& transform, DocumentLines& lines, const LineChunk& chunk,
                     Transformed& out) {
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
    if (!line.fault.empty()) return;
    ++out.report.documents;
    out.report.text_bytes += line.texts[0].size();
    transform.apply(chunk, line, out);
  });
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  to += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (byte >= 0x20) {
      to += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      to += '\\';
      to += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    } else {
      to += "\\u00";
      to += kDigits[byte >> 4];
      to += kDigits[byte & 15];
    }
  }
  to += '"';
}

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
  report.drop(reason, file, line.offset, line.texts[0]);
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

StepReport TransformResult::sum() const {
  StepReport all;
  for (const StepReport& report : reports) all.add(report);
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
      caller.messages << "going on with " << jobs[i].input << " at byte "
                      << all.back()->progress().offset << '\n';
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
        return [transform = std::shared_ptr<LineTransform>(make_transform()),
                lines = std::make_shared<DocumentLines>(
                    options.json_keys, static_cast<std::size_t>(options.max_document_bytes))](
                   const LineChunk& chunk, Transformed& out) {
          transform_chunk(*transform, *lines, chunk, out);
        };
      },
      [&](std::size_t stream, const LineChunk& chunk, const Transformed& out) {
        open[stream]->take(chunk, out);
      },
      [&](std::size_t stream) { open[stream]->finish(); }, num_workers(options));
  run.progress().finish();
  result.totals = run.totals();
  for (const auto& job : all) {
    result.reports.push_back(job->progress().report);
    result.lines.push_back(job->progress().line);
  }
  return result;
}

void forget_progress(const std::vector<TransformJob>& jobs) {
  for (const TransformJob& job : jobs) fs::remove(fs::path(job.kept).concat(".progress"));
}

std::vector<TransformJob> jobs_in(const fs::path& folder, const std::vector<std::string>& files,
                                  bool with_dropped) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(fs::is_directory(folder), "--output ", folder.string(),
        " cannot be made: ", error.message());
  std::set<std::string> names;
  std::vector<TransformJob> jobs;
  for (const std::string& file : files) {
    std::string name = file == "-" ? "stdin" : fs::path(file).filename().string();
    for (const char* ending :
         {".gz", ".xz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".txt"}) {
      if (name.ends_with(ending)) name.erase(name.size() - std::string_view(ending).size());
    }
    check(names.insert(name).second, "two inputs are called ", name,
          ", and so would their outputs; give them apart, each with an --output of its own");
    jobs.push_back({file, folder / (name + ".jsonl"),
                    with_dropped ? folder / (name + ".dropped.jsonl") : fs::path()});
    check(
        fs::absolute(jobs.back().kept).lexically_normal() != fs::absolute(file).lexically_normal(),
        "--output ", folder.string(), " would replace the input ", file, "; name another folder");
  }
  return jobs;
}

}  // namespace bloomery
