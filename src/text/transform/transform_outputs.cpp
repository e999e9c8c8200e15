#include "text/transform/transform_outputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "text/transform/escape.h"
#include "text/transform/resumable_files.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path lock_of(const fs::path& report) {
  return folder_of(report) / ("." + report.filename().string() + ".lock");
}

// Makes a folder and those above it; those that were missing, the innermost first.
std::vector<fs::path> make_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  for (fs::path each = folder; !each.empty() && !fs::exists(each); each = each.parent_path()) {
    missing.push_back(each);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  check(fs::is_directory(folder), "the output folder ", folder.string(),
        " cannot be made: ", error.message());
  return missing;
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code missing;
  const std::uintmax_t size = fs::file_size(file, missing);
  return missing ? 0 : size;
}

}  // namespace

std::vector<fs::path> TransformJob::outputs() const {
  if (dropped.empty()) return {kept};
  return {kept, dropped};
}

std::string input_identity(const std::string& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return escape_invalid_utf8(file);
  const auto time = fs::last_write_time(file, error).time_since_epoch().count();
  return concat(escape_invalid_utf8(file), " ", size, " bytes, changed at ", time);
}

TransformOutputs::TransformOutputs(std::vector<TransformJob> jobs, fs::path report,
                                   TransformSettings settings)
    : jobs_(std::move(jobs)),
      report_(std::move(report)),
      settings_(std::move(settings)),
      made_(make_folders(folder_of(report_))),
      lock_(FileLock::try_lock(lock_of(report_))) {
  check(lock_ != nullptr, lock_holder(lock_of(report_)), " is writing to ",
        folder_of(report_).string(), "; wait until it has ended, or name another output");
  if (settings_.overwrite) fs::remove(report_);
}

TransformOutputs::~TransformOutputs() {
  if (made_.empty() || lock_ == nullptr) return;
  const fs::path lock = lock_of(report_);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(made_.front(), error)) {
    if (entry.path() != lock) return;
  }
  fs::remove(lock, error);
  for (const fs::path& folder : made_) fs::remove(folder, error);  // while they are empty
}

// What the outputs were made of and how large they are.
std::string TransformOutputs::record() const {
  Json inputs = Json::array(), outputs = Json::object();
  for (const TransformJob& job : jobs_) {
    inputs.push_back(input_identity(job.input));
    for (const fs::path& file : job.outputs()) {
      outputs[escape_invalid_utf8(file.filename().native())] = size_of(file);
    }
  }
  return Json{
      {"settings", escape_invalid_utf8(settings_.text)}, {"inputs", inputs}, {"outputs", outputs}}
      .dump();
}

std::optional<TransformReport> TransformOutputs::finished() const {
  const auto there = [](const fs::path& file) { return fs::exists(file); };
  if (settings_.overwrite || !fs::exists(report_)) return std::nullopt;
  for (const TransformJob& job : jobs_) {
    if (!fs::is_regular_file(job.input)) return std::nullopt;
    if (!std::ranges::all_of(job.outputs(), there)) return std::nullopt;
  }
  const std::string text = read_file(report_);
  const Json all = Json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("run") || all["run"].dump() != record()) {
    return std::nullopt;
  }
  clear_up();
  return TransformReport::parse(text);
}

void TransformOutputs::finish(const TransformReport& report) const {
  write_file(report_, report.json(record()) + "\n");
  clear_up();
}

void TransformOutputs::clear_up() const {
  for (const TransformJob& job : jobs_) fs::remove(note_of(job.kept));
  if (!work_.empty()) fs::remove_all(work_);
}

std::vector<TransformJob> jobs_in(const fs::path& folder, const std::vector<std::string>& files,
                                  bool with_dropped) {
  std::set<std::string> names;
  std::vector<TransformJob> jobs;
  for (const std::string& file : files) {
    std::string name = file == "-" ? "stdin" : fs::path(file).filename().string();
    for (const char* ending :
         {".gz", ".xz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".txt", ".parquet"}) {
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
