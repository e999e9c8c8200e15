#include "samples/instruct/record_source.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "text/parquet/parquet_file.h"

namespace bloomery {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

// The first byte that is no white space; nothing where there is none.
std::optional<char> first_byte(ByteSource& source) {
  std::vector<char> some(1 << 12);
  bool first = true;
  while (const std::size_t count = source.read(some)) {
    std::string_view text(some.data(), count);
    if (first && text.starts_with("\xEF\xBB\xBF")) {
      text.remove_prefix(3);
    }
    first = false;
    if (const std::size_t at = text.find_first_not_of(" \t\r\n"); at != text.npos) {
      return text[at];
    }
  }
  return std::nullopt;
}

std::string lines_of_array(const std::string& text, const std::string& name) {
  try {
    check_json_depth(text, kMaxJsonTreeDepth + 1);
    const auto array = nlohmann::ordered_json::parse(text);
    std::string lines;
    for (const auto& item : array) {
      lines += item.dump();
      lines += '\n';
    }
    return lines;
  } catch (const nlohmann::ordered_json::exception& error) {
    throw Error(concat(name, ": not valid JSON: ", error.what()));
  } catch (const Error& error) {
    throw Error(concat(name, ": ", error.what()));
  }
}

bool begins_array(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '[';
}

}  // namespace

RecordSource::RecordSource(std::vector<std::string> files)
    : files_(std::move(files)), kinds_(files_.size(), Kind::lines) {}

void RecordSource::open_reader(LineFormat format) {
  reader_.emplace(std::vector<std::string>{files_[file_]},
                  LineReaderOptions{.chunk_bytes = kChunkBytes,
                                    .max_line_bytes = kMostReadWhole,
                                    .format = format,
                                    .first_file = file_});
}

void RecordSource::open() {
  const std::string& path = files_[file_];
  opened_ = true;
  at_ = 0;
  text_.clear();
  if (is_parquet(path)) {
    kinds_[file_] = Kind::rows;
    return open_reader(LineFormat::jsonl);
  }
  if (std::filesystem::is_regular_file(path)) {
    const auto source = decompressed(std::make_unique<FileSource>(path));
    if (first_byte(*source) != '[') return open_reader(LineFormat::text);
  }
  text_ = read_decompressed(path);
  if (begins_array(text_)) {
    kinds_[file_] = Kind::array;
    text_ = lines_of_array(text_, shown_name(path));
  }
}

// The next whole lines of text_.
bool RecordSource::next_of_text(LineChunk& chunk) {
  if (at_ == text_.size()) {
    return false;
  }
  const std::size_t wanted = std::min(text_.size(), at_ + kChunkBytes) - 1;
  const std::size_t end = std::min(text_.size(), text_.find('\n', wanted) + 1);
  const std::size_t whole = end == 0 ? text_.size() : end;  // the last line may lack its newline
  chunk.buffer.assign(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                      text_.begin() + static_cast<std::ptrdiff_t>(whole));
  chunk.used = chunk.buffer.size();
  chunk.overlong_bytes = 0;
  chunk.file = file_;
  chunk.first_of_file = at_ == 0;
  at_ = whole;
  return true;
}

bool RecordSource::next(LineChunk& chunk) {
  for (; file_ < files_.size(); ++file_) {
    if (!opened_) {
      open();
    }
    if (reader_ ? reader_->next(chunk) : next_of_text(chunk)) {
      check(chunk.overlong_bytes == 0, shown_name(files_[file_]), ": a record of ",
            chunk.overlong_bytes, " bytes is longer than any here");
      return true;
    }
    opened_ = false;
    reader_.reset();
    text_ = std::string();
  }
  return false;
}

std::string RecordSource::place(std::size_t file, std::int64_t line) const {
  if (kinds_[file] == Kind::rows) return line_place(static_cast<std::uint64_t>(line), true);
  return concat(kinds_[file] == Kind::array ? "record " : "line ", line + 1);
}

}  // namespace bloomery
