#include "text/input/line_reader.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "text/input/file_kind.h"
#include "text/parquet/parquet_chunks.h"
#include "text/parquet/parquet_file.h"

namespace bloomery {
namespace {

constexpr std::size_t npos = std::string_view::npos;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// One more than the position of the last newline; 0 without one.
std::size_t end_of_last_line(std::string_view text) {
  const std::size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

}  // namespace

LineReader::LineReader(std::vector<std::string> files, const LineReaderOptions& options,
                       const std::atomic<bool>* stop)
    : files_(std::move(files)), options_(options), stop_(stop) {
  check(options_.chunk_bytes > 0 && options_.max_line_bytes > 0, "chunks and lines have a size");
}

LineReader::~LineReader() = default;

bool LineReader::open_next_file() {
  if (file_ == files_.size()) {
    return false;
  }
  const std::string& path = files_[file_++];
  if (options_.format != LineFormat::text && is_parquet(path)) {
    LineReaderOptions how = options_;
    if (file_ > 1) how.begin = 0;
    if (file_ < files_.size()) how.end_row = UINT64_MAX;
    rows_ = std::make_unique<ParquetChunks>(path, how);
    return true;
  }
  auto raw = std::make_unique<FileSource>(path);
  raw->stop_when(stop_);
  raw_ = raw.get();
  source_ = decompressed(std::move(raw));
  offset_ = line_ = 0;
  first_ = true;
  ended_ = false;
  format_ = options_.format;
  rest_.clear();
  if (file_ == 1 && options_.begin > 0) skip_to_begin();
  return true;
}

void LineReader::skip_to_begin() {
  std::vector<char> skipped(std::min<std::uint64_t>(options_.chunk_bytes, options_.begin));
  while (offset_ < options_.begin) {
    const std::size_t wanted = std::min<std::uint64_t>(skipped.size(), options_.begin - offset_);
    const std::size_t count = source_->read({skipped.data(), wanted});
    check(count > 0, shown_name(files_[0]), " ends before byte ", options_.begin,
          ", where its reading stopped last time; it is another file now");
    offset_ += count;
  }
  line_ = options_.first_line;
  first_ = false;
}

void LineReader::count_lines(LineChunk& chunk) {
  chunk.first_line = line_;
  if (!options_.number_lines) return;
  if (chunk.overlong_bytes > 0) ++line_;
  const std::string_view text = chunk.bytes();
  for (std::size_t at = 0; at < text.size();) line_ += is_blank(next_line(text, at)) ? 0 : 1;
}

// Gives the chunk a buffer of the usual size, whatever long line it held before, and the rest of
// the last chunk in it.
void LineReader::prepare(LineChunk& chunk) const {
  const std::size_t size = std::max(options_.chunk_bytes, rest_.size() + options_.chunk_bytes / 2);
  if (chunk.buffer.capacity() > 2 * size) {
    chunk.buffer = std::vector<char>();  // {} would keep the memory
  }
  chunk.buffer.resize(size);
  std::ranges::copy(rest_, chunk.buffer.begin());
  chunk.used = rest_.size();
  chunk.overlong_bytes = 0;
}

// Appends to the chunk until it holds as much as its buffer does; returns what it holds.
std::size_t LineReader::fill(LineChunk& chunk) {
  while (!ended_ && chunk.used < chunk.buffer.size()) {
    const std::size_t count =
        source_->read({chunk.buffer.data() + chunk.used, chunk.buffer.size() - chunk.used});
    ended_ = count == 0;
    chunk.used += count;
    if (options_.at_once && chunk.bytes().substr(chunk.used - count).find('\n') != npos) break;
  }
  if (first_ && offset_ == 0 && chunk.bytes().starts_with(kByteOrderMark)) {
    chunk.used -= kByteOrderMark.size();
    std::memmove(chunk.buffer.data(), chunk.buffer.data() + kByteOrderMark.size(), chunk.used);
    offset_ = kByteOrderMark.size();
  }
  return chunk.used;
}

// The chunk holds the beginning of a line over the limit: reads on to the end of that line.
void LineReader::skip_long_line(LineChunk& chunk) {
  std::uint64_t length = chunk.used;
  chunk.used = 0;
  rest_.clear();
  while (fill(chunk) > 0) {
    const std::size_t newline = chunk.bytes().find('\n');
    if (newline != std::string_view::npos) {
      length += newline;
      rest_.assign(chunk.buffer.begin() + static_cast<std::ptrdiff_t>(newline) + 1,
                   chunk.buffer.begin() + static_cast<std::ptrdiff_t>(chunk.used));
      offset_ += length + 1;
      break;
    }
    length += chunk.used;
    chunk.used = 0;
  }
  chunk.used = 0;
  chunk.overlong_bytes = length;
}

// Of the Parquet file at hand.
bool LineReader::next_rows(LineChunk& chunk) {
  chunk.file = options_.first_file + file_ - 1;
  const bool some = rows_->next(chunk);
  if (some) {
    chunk.input_position = bytes_of_finished_files_ + rows_->position();
  } else {
    bytes_of_finished_files_ += rows_->position();
    rows_ = nullptr;
  }
  return some;
}

bool LineReader::next(LineChunk& chunk) {
  while (stop_ == nullptr || !stop_->load(std::memory_order_relaxed)) {
    if (source_ == nullptr && rows_ == nullptr && !open_next_file()) {
      return false;
    }
    if (rows_ != nullptr) {
      if (next_rows(chunk)) return true;
      continue;
    }
    prepare(chunk);
    if (fill(chunk) == 0) {
      bytes_of_finished_files_ += raw_->position();
      source_ = nullptr;
      continue;
    }
    chunk.file = options_.first_file + file_ - 1;
    chunk.first_of_file = first_;
    if (first_) check_is_text(files_[file_ - 1], chunk.bytes(), options_.format);
    first_ = false;
    std::size_t whole = ended_ ? chunk.used : end_of_last_line(chunk.bytes());
    while (whole == 0 && !ended_ && chunk.used <= options_.max_line_bytes) {
      const std::size_t before = chunk.used;
      chunk.buffer.resize(std::min(2 * before, options_.max_line_bytes + 1));
      fill(chunk);
      const std::size_t end = end_of_last_line(chunk.bytes().substr(before));
      whole = ended_ ? chunk.used : end == 0 ? 0 : before + end;
    }
    chunk.offset = offset_;
    chunk.input_position = bytes_of_finished_files_ + raw_->position();
    chunk.format = format_;
    if (whole == 0) {
      skip_long_line(chunk);
      chunk.end = offset_;
      count_lines(chunk);
      return true;
    }
    rest_.assign(chunk.buffer.begin() + static_cast<std::ptrdiff_t>(whole),
                 chunk.buffer.begin() + static_cast<std::ptrdiff_t>(chunk.used));
    chunk.used = whole;
    chunk.end = offset_ += whole;
    count_lines(chunk);
    if (format_ == LineFormat::automatic) {
      chunk.format = format_ = recognise_format(files_[file_ - 1], chunk.bytes());
    }
    return true;
  }
  return false;
}

}  // namespace bloomery
