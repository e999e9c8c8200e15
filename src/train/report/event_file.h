// TensorBoard event files: records of Event messages in TFRecord framing (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/report/log_file.h"

namespace bloomery {

// One writer makes one new file; a run that resumes makes another in the same folder, and
// TensorBoard shows them as one, as it does with the file that a writer goes on in when its first
// was lost. add_*() collects; flush() hands whole records to the system.
class EventFile {
 public:
  // Makes the folder where it is missing. `now` is in seconds since 1970.
  EventFile(const std::filesystem::path& folder, double now, Warn warn = {});

  void add_scalar(std::string_view tag, double value, std::int64_t step, double now);
  // Shown under TEXT, read as Markdown.
  void add_text(std::string_view tag, std::string_view text, std::int64_t step, double now);
  void flush() { file_.flush(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void add_event(double now, std::int64_t step, std::string_view fields);

  LogFile file_;
};

// The record of a payload: length, checksum of the length, payload, checksum of the payload.
std::string tf_record(std::string_view payload);

}  // namespace bloomery
