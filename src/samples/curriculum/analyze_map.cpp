#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "samples/curriculum/analyze.h"
#include "samples/curriculum/analyze_files.h"
#include "samples/curriculum/row_file.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {
namespace {

// How rare each token is: minus the logarithm of its share of all tokens.
std::vector<double> token_rarity(const AnalyzeOptions& o) {
  const std::filesystem::path file =
      metric_prefix(o.save, DifficultyMetric::total_vocab_freq, "metric_value");
  check(std::filesystem::exists(file.string() + ".idx"), "there is no ", file.string(),
        ".idx: the rarity of tokens needs the metric total_vocab_freq, map and reduce, first");
  std::vector<std::int64_t> counts = read_rows(file).numbers;
  std::ranges::replace(counts, 0, 1);
  const auto total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  std::vector<double> rarity;
  for (const std::int64_t count : counts) {
    rarity.push_back(-std::log(static_cast<double>(count) / total));
  }
  return rarity;
}

// What is the same for all samples.
struct Measures {
  std::vector<double> rarity;
  std::int64_t length_factor = 0;  // of seqlen_vocab_rarity

  Measures(const Dataset& samples, const AnalyzeOptions& o) {
    const bool rare = std::ranges::any_of(o.metrics, [](DifficultyMetric m) {
      return m == DifficultyMetric::vocab_rarity || m == DifficultyMetric::seqlen_vocab_rarity;
    });
    if (rare) {
      rarity = token_rarity(o);
      const double length = static_cast<double>(samples.fields().front().shape.numel());
      const double most = length * std::ranges::max(rarity);
      length_factor = std::llround(std::pow(10, std::ceil(std::log10(most)) + 1));
    }
  }

  std::int64_t of(DifficultyMetric metric, std::span<const TokenId> tokens) const {
    const auto length = static_cast<std::int64_t>(tokens.size());
    if (metric == DifficultyMetric::seqlen) {
      return length;
    }
    double sum = 0;
    for (const TokenId token : tokens) {
      sum += rarity.at(static_cast<std::size_t>(token));
    }
    const auto rare = static_cast<std::int64_t>(sum);
    return metric == DifficultyMetric::vocab_rarity ? rare : length * length_factor + rare;
  }
};

std::span<const TokenId> real_tokens(const HostBatch& sample) {
  const std::span<const TokenId> tokens = sample.array<TokenId>("tokens");
  if (sample.find("key_end") == nullptr) {
    return tokens;
  }
  return tokens.first(static_cast<std::size_t>(sample.array<std::int32_t>("key_end").front()));
}

// The files of one metric of one part.
class PartOfMetric {
 public:
  explicit PartOfMetric(const AnalyzeOptions& o, DifficultyMetric metric) : metric_(metric) {
    if (metric == DifficultyMetric::total_vocab_freq) {
      counts_.resize(static_cast<std::size_t>(o.vocabulary + 1));
    }
  }

  void add(std::int64_t sample, std::span<const TokenId> tokens, const Measures& measures) {
    if (!counts_.empty()) {
      for (const TokenId token : tokens) {
        ++counts_.at(static_cast<std::size_t>(token));
      }
      return;
    }
    const std::int64_t value = measures.of(metric_, tokens);
    values_.add(std::span(&value, 1));
    samples_of_[value].waiting.push_back(sample);
  }

  // DeepSpeed writes a line where more than a hundred have come together.
  void end_batch() {
    constexpr std::size_t kWaiting = 100;
    for (auto& [value, samples] : samples_of_) {
      if (samples.waiting.size() > kWaiting) {
        samples.write_line();
      }
    }
  }

  void store(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    const auto file = [&](const char* what) { return folder / concat(name(metric_), "_", what); };
    if (!counts_.empty()) {
      Rows row;
      row.add(counts_);
      return write_rows(file("metric_value"), RowType::i64, row);
    }
    remove_lists(folder, metric_);
    for (auto& [value, samples] : samples_of_) {
      if (!samples.waiting.empty()) {
        samples.write_line();
      }
      write_file(folder / list_name(metric_, value), samples.text);
    }
    write_rows(file("sample_to_metric"), RowType::i64, values_);
  }

 private:
  struct Samples {
    std::vector<std::int64_t> waiting;
    std::string text;

    void write_line() {
      for (std::size_t i = 0; i < waiting.size(); ++i) {
        text += concat(i == 0 ? "" : ",", waiting[i]);
      }
      text += "\r\n";
      waiting.clear();
    }
  };

  DifficultyMetric metric_;
  std::vector<std::int64_t> counts_;
  Rows values_;
  std::map<std::int64_t, Samples> samples_of_;
};

void map_part(const Dataset& samples, const AnalyzeOptions& o, const Measures& measures,
              std::int64_t thread, std::int64_t begin, std::int64_t end) {
  std::vector<PartOfMetric> parts;
  for (const DifficultyMetric metric : o.metrics) {
    parts.emplace_back(o, metric);
  }
  HostBatch sample(DeviceKind::cpu, samples.fields(), 1);
  for (std::int64_t k = begin; k < end; ++k) {
    samples.read(k, Sample(sample, 0));
    const std::span<const TokenId> tokens = real_tokens(sample);
    const bool known =
        std::ranges::all_of(tokens, [&](TokenId t) { return t >= 0 && t <= o.vocabulary; });
    check(known, "sample ", k, " has a token that the vocabulary of ", o.vocabulary,
          " lacks: give the tokenizer that the corpus was made with");
    for (PartOfMetric& part : parts) {
      part.add(k, tokens, measures);
    }
    if ((k + 1 - begin) % o.batch == 0 || k + 1 == end) {
      std::ranges::for_each(parts, &PartOfMetric::end_batch);
    }
  }
  for (std::size_t m = 0; m < parts.size(); ++m) {
    parts[m].store(part_folder(o.save, o.metrics[m], o.worker, thread));
  }
}

}  // namespace

void analyze_map(const Dataset& samples, const AnalyzeOptions& o) {
  const Measures measures(samples, o);
  const auto workers = cut_evenly(0, samples.size(), o.num_workers);
  const auto bounds = cut_evenly(workers[o.worker], workers[o.worker + 1], o.num_threads);
  std::vector<std::int64_t> threads = o.only_threads;
  if (threads.empty()) {
    threads.resize(static_cast<std::size_t>(o.num_threads));
    std::iota(threads.begin(), threads.end(), 0);
  }
  ThreadPool pool(static_cast<int>(std::min<std::int64_t>(o.num_threads, usable_cores())));
  pool.for_each(static_cast<std::int64_t>(threads.size()), [&](std::int64_t i) {
    const std::int64_t t = threads[i];
    map_part(samples, o, measures, t, bounds[t], bounds[t + 1]);
  });
}

}  // namespace bloomery
