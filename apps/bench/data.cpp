// `bloomery bench data`: how fast the index of a large corpus is built, and in how much memory.
#include <sys/resource.h>

#include <chrono>
#include <iomanip>

#include "apps/bench/bench.h"
#include "apps/common/command_line.h"
#include "base/error.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "samples/gpt_index_cache.h"
#include "samples/index_files.h"

namespace bloomery {
namespace {

struct BenchDataOptions {
  std::int64_t documents = 100'000'000, mean_length = 512, seq_length = 2048, epochs = 1;
  std::int64_t seed = 1234;
  std::string folder;
  bool json = false;
};

void describe(OptionTable& t, BenchDataOptions& o) {
  t.section("index of a synthetic corpus");
  t.add("documents", o.documents, "Number of documents.", between(1, INT32_MAX));
  t.add("mean-length", o.mean_length, "Mean tokens per document.", between(1, 1 << 29));
  t.add("seq-length", o.seq_length, "Tokens per sample.", at_least(1));
  t.add("epochs", o.epochs, "Number of epochs to index.", at_least(1));
  t.add("seed", o.seed, "Seed of the sample order.", between(0, UINT32_MAX));
  t.add("data-cache-path", o.folder, "Folder for the index; none: a temporary folder.");
  t.add("json", o.json, "Print one JSON object instead of a line of text.");
}

// Lengths from 1 to twice the mean.
std::vector<std::int32_t> made_up_lengths(const BenchDataOptions& o) {
  std::vector<std::int32_t> lengths(o.documents);
  const RandomKey key = random_key(1, "document lengths");
  for (std::int64_t i = 0; i < o.documents; i += 4) {
    const RandomBlock block = philox<kDropoutRounds>(
        key, {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0});
    for (std::int64_t k = 0; k < std::min<std::int64_t>(4, o.documents - i); ++k) {
      lengths[i + k] = static_cast<std::int32_t>(1 + block[k] % (2 * o.mean_length - 1));
    }
  }
  return lengths;
}

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace

int bench_data(const Arguments& arguments, std::ostream& out) {
  BenchDataOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench data [OPTIONS]\n\nBuilds the index of a large synthetic "
                    "corpus.\n\nexample:\n  bloomery bench data --documents 1000000\n")) {
    return 0;
  }
  const TemporaryFolder temporary;
  const std::filesystem::path folder =
      o.folder.empty() ? temporary.path() : std::filesystem::path(o.folder);
  check(is_writable_folder(folder), "--data-cache-path ", folder.string(), " cannot be written to");
  const std::vector<std::int32_t> lengths = made_up_lengths(o);
  std::int64_t tokens = 0;
  for (const std::int32_t length : lengths) {
    tokens += length;
  }
  const GptIndexPlan plan =
      plan_gpt_index(tokens, o.seq_length, (o.epochs * tokens - 1) / o.seq_length);
  const GptIndexKey key{"bench", "train", plan.total_samples, plan.num_epochs, o.seq_length,
                        o.seed,  "1,0,0"};
  const auto start = std::chrono::steady_clock::now();
  write_gpt_index(folder / key.hash(), lengths, {0, o.documents}, plan, o.seed);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const auto indexed = static_cast<double>(o.documents * plan.num_epochs);
  const double rate = indexed / seconds;
  const double bytes = peak_resident_bytes() / (indexed + static_cast<double>(plan.total_samples));
  if (o.json) {
    out << "{\"documents\": " << o.documents << ", \"epochs\": " << plan.num_epochs
        << ", \"samples\": " << plan.total_samples << ", \"seconds\": " << seconds
        << ", \"documents_per_second\": " << rate << ", \"peak_bytes_per_entry\": " << bytes
        << "}\n";
    return 0;
  }
  out << "index of " << o.documents << " documents, " << plan.num_epochs << " epochs, "
      << plan.total_samples << " samples: " << std::fixed << std::setprecision(2) << seconds
      << " s, " << rate * 1e-6 << " million documents/s, peak " << bytes
      << " bytes per document and sample\n";
  return 0;
}

}  // namespace bloomery
