// `bloomery bench tokenizer`: how fast one core encodes files, each read once with a cold cache.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/common/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "tokenizer/load.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

struct BenchTokenizerOptions {
  TokenizerOptions tokenizer;
  std::vector<std::string> input;
  int repeats = 5;
  bool json = false;
};

void describe(OptionTable& t, BenchTokenizerOptions& o) {
  describe(t, o.tokenizer);
  t.section("measurement");
  t.add("input", o.input, "Text files, each encoded as one text.").required();
  t.add("repeats", o.repeats, "Runs per file, each with a new encoder; the best counts.",
        at_least(1));
  t.add("json", o.json, "Print one JSON object per line instead of a table.");
}

struct Measured {
  double seconds;  // of the best run
  std::vector<TokenId> ids;
};

Measured measure(const Tokenizer& tokenizer, const std::string& text, int repeats) {
  Measured best{1e30, {}};
  for (int i = 0; i < repeats; ++i) {
    best.ids.clear();  // keeps its memory: growing it is not what is measured
    const auto encoder = tokenizer.make_encoder({.parse_special = false});
    const auto start = std::chrono::steady_clock::now();
    encoder->encode(text, best.ids);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best.seconds = std::min(best.seconds, spent.count());
  }
  return best;
}

// FNV-1a over the ids, one 32-bit word at a time, so that another program can compare.
std::uint64_t fingerprint(const std::vector<TokenId>& ids) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const TokenId id : ids) {
    hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001B3;
  }
  return hash;
}

}  // namespace

int bench_tokenizer(const Arguments& arguments, std::ostream& out) {
  BenchTokenizerOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench tokenizer --tokenizer PATH --input FILE... "
                    "[OPTIONS]\n\nMeasures the encoding speed of a tokenizer.\n\nexample:\n  "
                    "bloomery bench tokenizer --tokenizer run/tokenizer --input my.txt\n")) {
    return 0;
  }
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  if (!options.json) {
    out << std::left << std::setw(40) << "file" << std::right << std::setw(12) << "bytes"
        << std::setw(12) << "tokens" << std::setw(10) << "MB/s" << '\n';
  }
  for (const std::string& name : options.input) {
    const std::string text = read_file(name);
    check(is_utf8(text), name, " is not valid UTF-8");
    const Measured result = measure(*tokenizer, text, options.repeats);
    const double rate = static_cast<double>(text.size()) / result.seconds * 1e-6;
    if (options.json) {
      const nlohmann::ordered_json line = {{"file", name},
                                           {"bytes", text.size()},
                                           {"tokens", result.ids.size()},
                                           {"fingerprint", fingerprint(result.ids)},
                                           {"seconds", result.seconds},
                                           {"megabytes_per_second", rate}};
      out << line.dump() << std::endl;
    } else {
      out << std::left << std::setw(40) << name << std::right << std::setw(12) << text.size()
          << std::setw(12) << result.ids.size() << std::setw(10) << std::fixed
          << std::setprecision(1) << rate << std::endl;
    }
  }
  return 0;
}

}  // namespace bloomery
