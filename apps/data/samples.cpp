// `bloomery data samples`: the token ids that training will see.
#include <charconv>
#include <string>

#include "apps/common/command_line.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "data/samples/datasets.h"

namespace bloomery {
namespace {

struct DataSamplesOptions {
  DataOptions data;
  std::int64_t seed = 1234;
  std::int64_t num_samples = 0, first = 0, count = 1;
  Split which = Split::train;
  bool json = false;
};

void describe(OptionTable& t, DataSamplesOptions& o) {
  describe_corpora(t, o.data);
  for (const char* of_loading : {"dataloader-type", "no-data-sharding", "num-workers",
                                 "reset-position-ids", "reset-attention-mask", "eod-mask-loss"}) {
    t.ignore(of_loading, "samples are shown by their number, as no loader has ordered them");
  }
  t.section("samples");
  t.add("seed", o.seed, "Seed of the order of samples.", between(0, UINT32_MAX));
  t.add("num-samples", o.num_samples,
        "Samples that the run asks of this split; 0: one epoch. The order depends on it.",
        at_least(0));
  t.add("which", o.which, "Which split.",
        {{"train", Split::train}, {"valid", Split::valid}, {"test", Split::test}});
  t.add("first", o.first, "First sample to print.", at_least(0));
  t.add("count", o.count, "How many samples to print.", at_least(0));
  t.add("json", o.json, "One JSON object per line: {\"sample\": k, \"tokens\": [ids]}.");
}

void append_ids(std::string& line, std::span<const TokenId> ids, char separator) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    char digits[16];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), ids[i]);
    if (i > 0) {
      line += separator;
    }
    line.append(digits, end);
  }
}

void print_samples(const SampleSource& source, const DataSamplesOptions& o, std::ostream& out) {
  std::vector<TokenId> tokens(source.num_tokens());
  std::string line;
  for (std::int64_t k = o.first; k < o.first + o.count; ++k) {
    source.read(k, tokens);
    line = o.json ? concat("{\"sample\": ", k, ", \"tokens\": [") : concat(k, ": ");
    append_ids(line, tokens, o.json ? ',' : ' ');
    line += o.json ? "]}\n" : "\n";
    out << line;
  }
}

}  // namespace

int data_samples(const Arguments& arguments, std::ostream& out) {
  DataSamplesOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out,
                    "usage: bloomery data samples --data-path PREFIX --seq-length N [OPTIONS]\n",
                    [&] { return problems(o.data); })) {
    return 0;
  }
  const Log log;
  const std::unique_ptr<SampleSource> source =
      DatasetBuilder(o.data, o.seed, log).build(o.which, o.num_samples);
  check(!o.data.paths(o.which).empty(), "no data for the ", name(o.which), " split: give --",
        name(o.which), "-data-path, or --data-path with --split");
  check(source != nullptr, "there are no documents for the ", name(o.which), " split; --split is '",
        o.data.split, "'");
  check(o.first <= source->size() && o.count <= source->size() - o.first, o.count, " samples from ",
        o.first, " on were asked for; the ", name(o.which), " split has ", source->size(),
        " (give a larger --num-samples to go on into further epochs)");
  print_samples(*source, o, out);
  return 0;
}

}  // namespace bloomery
