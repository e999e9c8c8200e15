// `bloomery bench minhash`: how fast one thread makes signatures of the documents of a file.
#include "text/dedup/minhash.h"

#include <chrono>
#include <iomanip>

#include "apps/bench/bench.h"
#include "apps/common/command_line.h"
#include "base/error.h"
#include "text/input/document_lines.h"

namespace bloomery {
namespace {

struct BenchMinHashOptions {
  std::string input, json_key = "text";
  double seconds = 3;
  MinHashOptions minhash;
  bool json = false;
};

void describe(OptionTable& t, BenchMinHashOptions& o) {
  t.section("signatures");
  t.add("input", o.input, "File of documents; it is read into memory.").required();
  t.add("json-key", o.json_key, "JSON key of the text.");
  t.add("hash", o.minhash.hash, "Hash function of shingles.",
        {{"xxh64", ShingleHash::xxh64}, {"sha1", ShingleHash::sha1}});
  t.add("num-buckets", o.minhash.num_buckets, "LSH buckets per signature.", between(1, 1000));
  t.add("hashes-per-bucket", o.minhash.hashes_per_bucket, "Hashes per bucket.", between(1, 1000));
  t.add("seconds", o.seconds, "Minimum measuring time in seconds.", above(0));
  t.add("json", o.json, "Print one JSON object instead of a line of text.");
}

std::vector<std::string> read_texts(const BenchMinHashOptions& o) {
  LineReader reader({o.input}, {});
  DocumentLines lines({o.json_key}, LineReaderOptions().max_line_bytes, "");
  LineChunk chunk;
  std::vector<std::string> texts;
  while (reader.next(chunk)) {
    lines.for_each(chunk, [&](const DocumentLine& line) {
      if (line.fault.empty()) texts.emplace_back(line.texts[0]);
    });
  }
  check(!texts.empty(), o.input, " has no document");
  return texts;
}

}  // namespace

int bench_minhash(const Arguments& arguments, std::ostream& out) {
  BenchMinHashOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench minhash --input FILE\n\nMeasures MinHash signatures of "
                    "documents.\n\nexample:\n  bloomery bench minhash --input web.jsonl\n")) {
    return 0;
  }
  const std::vector<std::string> texts = read_texts(o);
  double bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<double>(text.size());
  MinHash minhash(o.minhash);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  std::uint64_t sum = 0;
  int passes = 0;
  double elapsed = 0;
  while (elapsed < o.seconds) {
    for (const std::string& text : texts) {
      const std::span<const std::uint64_t> signature = minhash.signature(text);
      if (!signature.empty()) sum += signature[0];
    }
    ++passes;
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  const double rate = passes * bytes / cpu / 1e6;
  const double documents = passes * static_cast<double>(texts.size()) / cpu;
  out << std::fixed << std::setprecision(1);
  if (o.json) {
    out << "{\"megabytes_per_second\": " << rate << ", \"documents_per_second\": " << documents
        << ", \"sum\": " << sum % 1'000'000 << "}\n";
  } else {
    out << "signatures of " << texts.size() << " documents: " << rate << " MB/s, " << documents
        << " documents/s of CPU time, one thread\n";
  }
  return 0;
}

}  // namespace bloomery
