#include "text/lines/line_options.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "config/option_table.h"

namespace bloomery {

void describe_lines(OptionTable& t, LineOptions& o, const std::string& keys) {
  t.section("input");
  t.add("input", o.input,
        "Files and patterns ('data/*.jsonl.gz'), in this order; - is standard input. gzip, xz, "
        "zstd and Parquet are recognised by content; what is no UTF-8 text (UTF-16, CSV, bzip2, "
        "archives) is refused with the way to convert it.")
      .required();
  t.add(
      "input-format", o.input_format,
      "What a line is: a JSON object or a document as it is; auto goes by name and content. A row "
      "of "
      "a Parquet file is a JSON object.",
      {{"auto", LineFormat::automatic}, {"jsonl", LineFormat::jsonl}, {"text", LineFormat::text}});
  t.add("json-keys", o.json_keys, keys).alias("json-key");
  t.add("max-document-bytes", o.max_document_bytes,
        "A longer line counts as bad. Each of --workers takes up to about 16 times as much memory.",
        between(1, 1 << 30))
      .alias("max-document-length");
  t.add("strict", o.strict, "Stop at the first bad line instead of counting it.");
}

void describe_workers(OptionTable& t, LineOptions& o) {
  t.add("workers", o.workers, "Threads that work; 0 takes all cores, more is never used.",
        between(0, 1 << 16))
      .alias("num-threads");
  t.add("log-interval", o.log_interval, "Documents between progress lines.", at_least(1));
}

int num_workers(const LineOptions& options) {
  constexpr int kMostWorkers = 64;  // one thread reads, and cannot feed more than about this many
  const int cores = usable_cores();
  return std::min({options.workers > 0 ? options.workers : cores, cores, kMostWorkers});
}

}  // namespace bloomery
