#include "text/lines/line_run.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "text/input/file_kind.h"
#include "text/input/input_files.h"
#include "text/parquet/parquet_file.h"

namespace bloomery {

LineRun::LineRun(const LineOptions& options, const LineCaller& caller,
                 std::vector<std::string> files)
    : options_(options),
      caller_(caller),
      files_(std::move(files)),
      total_bytes_(total_bytes(files_)),
      progress_(caller.messages, {caller.terminal, options.log_interval, total_bytes_}) {
  check_are_text(files_, options.input_format);
  if (options.input_format == LineFormat::text) return;
  for (const std::string& file : files_) {
    if (is_parquet(file)) ParquetFile(file).check_text_columns(options.json_keys, "--json-keys");
  }
}

LineReaderOptions LineRun::reader_options(bool keys_alone) const {
  return {.max_line_bytes = static_cast<std::size_t>(options_.max_document_bytes),
          .format = options_.input_format,
          .columns = keys_alone ? options_.json_keys : std::vector<std::string>()};
}

double LineRun::share() const {
  const auto position = std::accumulate(positions_.begin(), positions_.end(), std::uint64_t{0});
  return total_bytes_ == 0
             ? 0
             : std::min(1.0, static_cast<double>(position) / static_cast<double>(total_bytes_));
}

void LineRun::check_keys(const LineChunk& chunk) const {
  check(chunk.format != LineFormat::text || options_.json_keys.size() == 1, files_[chunk.file],
        " is plain text, where a line is a document and has no keys; give one --json-keys, which "
        "then names the output, or --input-format jsonl");
}

void LineRun::rethrow_named(const LineChunk& chunk) const {
  try {
    throw;
  } catch (const Error& error) {
    throw Error(concat(shown_name(files_[chunk.file]), ", ", error.what()));
  }
}

void LineRun::before_take(std::size_t stream, const LineChunk& chunk, const LineCounts& counts) {
  positions_[stream] = chunk.input_position;
  if (chunk.first_of_file) progress_.opened(shown_name(files_[chunk.file]));
  for (const BadLine& line : counts.first_bad_lines) {
    const std::string text = line.text(files_);
    check(!options_.strict, text, "; --strict stops here, nothing was written");
    if (reported_++ < kBadLinesReported) progress_.message("bad line: " + text);
  }
  totals_.lines += counts.lines;
  totals_.bad_lines += counts.bad_lines;
  totals_.bytes += chunk.used + chunk.overlong_bytes;
}

void LineRun::after_take(const LineChunk& chunk, const LineCounts& counts) {
  progress_.advance(counts.lines, chunk.used + chunk.overlong_bytes,
                    std::accumulate(positions_.begin(), positions_.end(), std::uint64_t{0}));
}

}  // namespace bloomery
