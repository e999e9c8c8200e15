#include "text/lines/line_options.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "config/option_table.h"

namespace bloomery {

void describe_lines(OptionTable& t, LineOptions& o, const std::string& keys) {
  t.section("input");
  t.add("input", o.input,
        "Input files or patterns ('data/*.jsonl.gz'), read in this order; - is standard input. "
        "gzip, xz, zstd and Parquet are recognized by content. Other formats (UTF-16, CSV, bzip2, "
        "archives) are refused with the command that converts them.")
      .required();
  t.add(
      "input-format", o.input_format,
      "Format of a line: a JSON object or plain text; auto decides by name and content. A row of a "
      "Parquet file is a JSON object.",
      {{"auto", LineFormat::automatic}, {"jsonl", LineFormat::jsonl}, {"text", LineFormat::text}});
  t.add("json-keys", o.json_keys, keys).alias("json-key");
  t.add("max-document-bytes", o.max_document_bytes,
        "Maximum line length in bytes; longer lines count as bad. Each worker needs up to about 16 "
        "times as much memory.",
        between(1, 1 << 30))
      .alias("max-document-length");
  t.add("strict", o.strict, "Stop at the first bad line instead of skipping it.");
}

void describe_workers(OptionTable& t, LineOptions& o) {
  t.add("workers", o.workers, "Worker threads; 0: all cores.", between(0, 1 << 16))
      .alias("num-threads");
  t.add("log-interval", o.log_interval, "Documents between progress lines.", at_least(1));
}

int num_workers(const LineOptions& options) {
  constexpr int kMostWorkers = 64;  // one thread reads, and cannot feed more than about this many
  const int cores = usable_cores();
  return std::min({options.workers > 0 ? options.workers : cores, cores, kMostWorkers});
}

}  // namespace bloomery
