#include "text/input/document_lines.h"

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery {

DocumentLines::DocumentLines(std::vector<std::string> keys, std::size_t max_line_bytes,
                             std::string limit_flag)
    : keys_(std::move(keys)),
      max_line_bytes_(max_line_bytes),
      limit_flag_(std::move(limit_flag)),
      parser_(keys_) {}

void DocumentLines::note_length(std::uint64_t bytes) {
  line_.fault =
      concat("a line of ", bytes, " bytes; ",
             limit_flag_.empty() ? "the most that is read" : limit_flag_, " is ", max_line_bytes_);
}

void DocumentLines::read(std::string_view line, LineFormat format) {
  line_.fault.clear();
  line_.texts.clear();
  line_.tokens.clear();
  line_.raw = line;
  if (line.size() > max_line_bytes_) {
    note_length(line.size());
  } else if (format == LineFormat::text) {
    const std::size_t valid = valid_utf8_prefix(line);
    if (valid < line.size()) {
      line_.fault = concat("invalid UTF-8 (byte ", valid, " of the line)");
    } else {
      line_.texts.push_back(line);
    }
  } else if (!parser_.parse(line)) {
    line_.fault = parser_.fault();
  } else {
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      line_.texts.push_back(parser_.text(key));
      line_.tokens.push_back(parser_.token(key));
    }
  }
}

void DocumentLines::for_each(const LineChunk& chunk,
                             const std::function<void(const DocumentLine&)>& visit) {
  line_.is_row = chunk.format == LineFormat::parquet;
  if (chunk.overlong_bytes > 0) {
    line_.offset = chunk.offset;
    line_.number = chunk.first_line;
    line_.raw = {};
    line_.texts.clear();
    line_.tokens.clear();
    note_length(chunk.overlong_bytes);
    visit(line_);
    return;
  }
  const std::string_view text = chunk.bytes();
  std::uint64_t number = chunk.first_line, row = chunk.offset;
  for (std::size_t at = 0; at < text.size();) {
    line_.offset = line_.is_row ? row++ : chunk.offset + at;
    const std::string_view line = next_line(text, at);
    if (is_blank(line)) continue;
    line_.number = number++;
    read(line, chunk.format);
    visit(line_);
  }
  constexpr std::size_t kLargestKept = 8 << 20;  // so that a long line holds no memory for ever
  if (text.size() > kLargestKept) parser_ = JsonLineParser(keys_);
}

std::string BadLine::text(const std::vector<std::string>& files) const {
  return concat(shown_name(files[file]), ", ", line_place(offset, is_row), ": ", fault);
}

void LineCounts::add(const LineChunk& chunk, const DocumentLine& line) {
  if (line.fault.empty()) {
    ++lines;
  } else if (bad_lines++ < static_cast<std::int64_t>(kBadLinesReported)) {
    first_bad_lines.push_back({chunk.file, line.offset, line.is_row, line.fault});
  }
}

}  // namespace bloomery
