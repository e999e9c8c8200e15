#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "samples/curriculum/analyze.h"
#include "samples/curriculum/analyze_files.h"
#include "samples/curriculum/row_file.h"

namespace bloomery {
namespace {

std::vector<std::filesystem::path> part_folders(const AnalyzeOptions& o, DifficultyMetric metric) {
  std::vector<std::filesystem::path> folders;
  for (std::int64_t w = 0; w < o.num_workers; ++w) {
    for (std::int64_t t = 0; t < o.num_threads; ++t) {
      folders.push_back(part_folder(o.save, metric, w, t));
    }
  }
  return folders;
}

Rows read_part(const std::filesystem::path& folder, DifficultyMetric metric, const char* what) {
  const std::filesystem::path prefix = folder / concat(name(metric), "_", what);
  check(std::filesystem::exists(prefix.string() + ".idx"), "there is no ", prefix.string(),
        ".idx: run --analyzing-task map of that part first");
  return read_rows(prefix);
}

// The numbers of a list, whose lines do not matter.
void append_list(const std::filesystem::path& path, std::vector<std::int64_t>& samples) {
  const std::string text = read_file(path);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ',' || *at == '\r' || *at == '\n') {
      ++at;
      continue;
    }
    std::int64_t sample = 0;
    const auto [next, error] = std::from_chars(at, end, sample);
    check(error == std::errc(), path.string(), " is damaged: run the map of that part again");
    samples.push_back(sample);
    at = next;
  }
}

// DeepSpeed merges a file of several, each of which ends a document, and ends one more.
std::vector<std::int64_t> merged_documents(std::vector<std::int64_t> ends) {
  ends.push_back(ends.back());
  return ends;
}

// In how many rows each of the merged files ends.
std::vector<std::int64_t> ends_of(const AnalyzeOptions& o, const std::vector<std::int64_t>& rows) {
  const auto bounds = cut_evenly(0, static_cast<std::int64_t>(rows.size()), o.num_reduce_threads);
  std::vector<std::int64_t> ends;
  std::int64_t sum = 0;
  for (std::int64_t part = 0; part < o.num_reduce_threads; ++part) {
    for (std::int64_t i = bounds[part]; i < bounds[part + 1]; ++i) {
      sum += rows[i];
    }
    ends.push_back(sum);
  }
  return ends;
}

void reduce_counts(const AnalyzeOptions& o, DifficultyMetric metric) {
  std::vector<std::int64_t> sum;
  for (const std::filesystem::path& folder : part_folders(o, metric)) {
    const std::vector<std::int64_t> counts = read_part(folder, metric, "metric_value").numbers;
    sum.resize(std::max(sum.size(), counts.size()));
    check(sum.size() == counts.size(), folder.string(), " has counts of another vocabulary");
    std::ranges::transform(sum, counts, sum.begin(), std::plus());
  }
  Rows row;
  row.add(sum);
  const auto [least, most] = std::ranges::minmax(sum);
  write_rows(metric_prefix(o.save, metric, "metric_value"), fitting_type(least, most), row);
}

// By value, ascending: the samples that have it, in the order of the parts.
std::map<std::int64_t, std::vector<std::int64_t>> samples_by_value(
    const AnalyzeOptions& o, DifficultyMetric metric, const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::vector<std::int64_t>> samples;
  for (const std::int64_t value : values) {
    samples[value];
  }
  for (auto& [value, list] : samples) {
    for (const std::filesystem::path& folder : part_folders(o, metric)) {
      if (const auto path = folder / list_name(metric, value); std::filesystem::exists(path)) {
        append_list(path, list);
      }
    }
  }
  return samples;
}

void store_index(const AnalyzeOptions& o, DifficultyMetric metric, RowType value_type,
                 RowType sample_type,
                 const std::map<std::int64_t, std::vector<std::int64_t>>& by_value) {
  Rows samples, values, merged;
  for (const auto& [value, list] : by_value) {
    samples.add(list);
    values.add(std::span(&value, 1));
  }
  const std::size_t step = std::max<std::size_t>(1, samples.size() / 100);
  for (std::size_t row = 0; row < samples.size(); row += step) {
    std::vector<std::int64_t> some;
    for (std::size_t i = row; i < std::min(samples.size(), row + step); ++i) {
      some.insert(some.end(), samples[i].begin(), samples[i].end());
    }
    merged.add(some);
  }
  const auto documents = merged_documents(ends_of(o, std::vector<std::int64_t>(samples.size(), 1)));
  write_rows(metric_prefix(o.save, metric, "index_to_sample"), sample_type, samples, documents);
  write_rows(metric_prefix(o.save, metric, "index_to_metric"), value_type, values, documents);
  write_rows(metric_prefix(o.save, metric, "index_to_sample_percentile_merged"), sample_type,
             merged);
}

void reduce_values(std::int64_t num_samples, const AnalyzeOptions& o, DifficultyMetric metric) {
  Rows all;
  std::vector<std::int64_t> rows_of_parts;
  for (const std::filesystem::path& folder : part_folders(o, metric)) {
    const Rows part = read_part(folder, metric, "sample_to_metric");
    rows_of_parts.push_back(static_cast<std::int64_t>(part.size()));
    for (std::size_t row = 0; row < part.size(); ++row) {
      all.add(part[row]);
    }
  }
  check(static_cast<std::int64_t>(all.size()) == num_samples, "the map of ", name(metric), " has ",
        all.size(), " samples, and the split has ", num_samples,
        ": run it again for these data, with the same numbers of workers and threads");
  const auto [least, most] = std::ranges::minmax(all.numbers);
  const RowType type = fitting_type(least, most);
  write_rows(metric_prefix(o.save, metric, "sample_to_metric"), type, all,
             merged_documents(ends_of(o, rows_of_parts)));
  const auto by_value = samples_by_value(o, metric, all.numbers);
  std::int64_t listed = 0;
  for (const auto& [value, list] : by_value) {
    listed += static_cast<std::int64_t>(list.size());
  }
  check(listed == num_samples, "the lists of ", name(metric), " have ", listed, " of ", num_samples,
        " samples: run its map again");
  store_index(o, metric, type, fitting_type(0, num_samples - 1), by_value);
}

}  // namespace

void analyze_reduce(std::int64_t num_samples, const AnalyzeOptions& o) {
  for (const DifficultyMetric metric : o.metrics) {
    if (metric == DifficultyMetric::total_vocab_freq) {
      reduce_counts(o, metric);
    } else {
      reduce_values(num_samples, o, metric);
    }
  }
}

}  // namespace bloomery
