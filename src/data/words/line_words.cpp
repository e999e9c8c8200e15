#include "data/words/line_words.h"

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery {

std::string LineWords::too_long(std::uint64_t bytes) const {
  return concat("a line of ", bytes, " bytes; --max-document-bytes is ", max_line_bytes_);
}

void LineWords::note(const LineChunk& chunk, std::uint64_t offset, std::string fault) {
  if (bad_lines++ < static_cast<std::int64_t>(kBadLinesKept)) {
    first_bad_lines.push_back({chunk.file, offset, std::move(fault)});
  }
}

std::string LineWords::add_line(std::string_view line, LineFormat format) {
  if (line.size() > max_line_bytes_) return too_long(line.size());
  if (format == LineFormat::text) {
    const std::size_t valid = valid_utf8_prefix(line);
    if (valid < line.size()) return concat("invalid UTF-8 (byte ", valid, " of the line)");
    words.add_text(pattern_, line);
    return {};
  }
  if (!parser_.parse(line)) return parser_.fault();
  for (std::size_t key = 0; key < keys_; ++key) {
    words.add_text(pattern_, parser_.text(key));
  }
  return {};
}

void LineWords::add(const LineChunk& chunk, LineFormat format) {
  if (chunk.overlong_bytes > 0) {
    note(chunk, chunk.offset, too_long(chunk.overlong_bytes));
    return;
  }
  const std::string_view text = chunk.bytes();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::string_view line = next_line(text, at);
    if (is_blank(line)) continue;
    std::string fault = add_line(line, format);
    if (fault.empty()) {
      ++lines;
    } else {
      note(chunk, chunk.offset + begin, std::move(fault));
    }
  }
}

}  // namespace bloomery
