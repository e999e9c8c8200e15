#include "samples/curriculum/batches.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();  // below every difficulty
constexpr std::size_t kRecent = 64;                                       // batches

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::int64_t>(i);
  }
  return all;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

CurriculumBatches::CurriculumBatches(const CurriculumOptions& options, std::int64_t num_samples,
                                     std::int64_t global_batch)
    : options_(options),
      num_samples_(num_samples),
      global_batch_(global_batch),
      random_(static_cast<std::uint64_t>(options.seed)) {
  if (!options_.cluster_path.empty()) {
    std::filesystem::create_directories(options_.cluster_path);
  }
  for (const CurriculumMetric& metric : options_.metrics) {
    Index& index = indices_.emplace_back();
    if (!metric.clusters) {
      continue;
    }
    const std::string& path = metric.index_to_sample_path;
    index.samples = read_rows(path);
    for (const std::int64_t sample : index.samples.numbers) {
      check(sample >= 0 && sample < num_samples, path, " has sample ", sample,
            " of a training split of ", num_samples,
            ": it was made of other data; analyze these with `data analyze`");
    }
    if (metric.percentile) {
      check(static_cast<std::int64_t>(index.samples.numbers.size()) >= metric.schedule.max, path,
            " has ", index.samples.numbers.size(), " samples, too few for max_difficulty ",
            metric.schedule.max, " by percentile");
    } else {
      index.values = read_rows(metric.index_to_metric_path).numbers;
      check(index.values.size() == index.samples.size(), metric.index_to_metric_path, " has ",
            index.values.size(), " values for ", index.samples.size(), " rows of ", path);
    }
  }
}

CurriculumBatches::~CurriculumBatches() = default;

// Samples of difficulties above one and until another, in the order of the files.
std::vector<std::int64_t> CurriculumBatches::between(std::size_t metric, std::int64_t above,
                                                     std::int64_t until) const {
  const Index& index = indices_[metric];
  const std::vector<std::int64_t>& all = index.samples.numbers;
  std::vector<std::int64_t> found;
  if (options_.metrics[metric].percentile) {
    const std::int64_t most = options_.metrics[metric].schedule.max;
    const auto count = static_cast<std::int64_t>(all.size());
    const std::int64_t each = count / most;
    const std::int64_t begin = above == kNone ? 0 : each * above;
    const std::int64_t end = until == most ? count : each * until;
    if (begin < end) {
      found.assign(all.begin() + begin, all.begin() + end);
    }
    return found;
  }
  for (std::size_t row = 0; row < index.samples.size(); ++row) {
    if (index.values[row] > above && index.values[row] <= until) {
      found.insert(found.end(), index.samples[row].begin(), index.samples[row].end());
    }
  }
  return found;
}

std::vector<std::int64_t> CurriculumBatches::newly_admitted(
    const std::vector<std::int64_t>& before) const {
  std::vector<std::size_t> choosing;
  for (std::size_t m = 0; m < options_.metrics.size(); ++m) {
    if (options_.metrics[m].clusters) {
      choosing.push_back(m);
    }
  }
  if (choosing.empty()) {
    return clusters_.empty() ? counted(num_samples_) : std::vector<std::int64_t>();
  }
  if (choosing.size() == 1) {
    const std::size_t m = choosing.front();
    return between(m, before.empty() ? kNone : before[m], difficulties_[m]);
  }
  std::vector<std::int64_t> admitted = counted(num_samples_);  // by all of them
  for (const std::size_t m : choosing) {
    std::vector<std::int64_t> both;
    std::ranges::set_intersection(admitted, sorted(between(m, kNone, difficulties_[m])),
                                  std::back_inserter(both));
    admitted = std::move(both);
  }
  for (const Cluster& cluster : clusters_) {
    std::vector<std::int64_t> rest;
    std::ranges::set_difference(admitted, sorted(cluster.samples), std::back_inserter(rest));
    admitted = std::move(rest);
  }
  return admitted;
}

void CurriculumBatches::add_cluster(const std::vector<std::int64_t>& before) {
  Cluster cluster{.samples = newly_admitted(before)};
  if (cluster.samples.empty()) {
    return;
  }
  cluster.name = "cluster";
  for (std::size_t m = 0; m < options_.metrics.size(); ++m) {
    cluster.name += concat("_", options_.metrics[m].name, difficulties_[m]);
  }
  random_.shuffle(std::span(cluster.samples));
  store(cluster);
  clusters_.push_back(std::move(cluster));
}

void CurriculumBatches::store(const Cluster& cluster) const {
  if (!options_.cluster_path.empty()) {
    Rows rows;
    rows.add(cluster.samples);
    write_rows(std::filesystem::path(options_.cluster_path) / cluster.name,
               fitting_type(0, num_samples_), rows);
  }
}

// The next samples of a cluster, which starts in another order at its end.
void CurriculumBatches::take(Cluster& cluster, std::int64_t count,
                             std::vector<std::int64_t>& batch) {
  for (; count > 0; --count) {
    if (cluster.taken == cluster.samples.size()) {
      random_.shuffle(std::span(cluster.samples));
      store(cluster);
      cluster.taken = 0;
    }
    batch.push_back(cluster.samples[cluster.taken++]);
  }
}

std::vector<std::int64_t> CurriculumBatches::next() {
  ++step_;
  const std::vector<std::int64_t> before = difficulties_;
  difficulties_.clear();
  for (const CurriculumMetric& metric : options_.metrics) {
    difficulties_.push_back(metric.schedule.at(step_));
  }
  if (difficulties_ != before) {
    add_cluster(before);
  }
  check(!clusters_.empty(), "the curriculum admits no sample at step ", step_,
        ": give a larger min_difficulty");
  std::int64_t total = 0;
  for (const Cluster& cluster : clusters_) {
    total += static_cast<std::int64_t>(cluster.samples.size());
  }
  std::vector<double> weights;
  for (const Cluster& cluster : clusters_) {
    weights.push_back(static_cast<double>(cluster.samples.size()) / static_cast<double>(total));
  }
  std::vector<std::int64_t> counts(clusters_.size());
  for (const std::int64_t cluster : random_.choice(weights, global_batch_)) {
    ++counts[static_cast<std::size_t>(cluster)];
  }
  std::vector<std::int64_t> batch;
  for (std::size_t c = 0; c < clusters_.size(); ++c) {
    take(clusters_[c], counts[c], batch);
  }
  random_.shuffle(std::span(batch));
  return batch;
}

CurriculumOrder::CurriculumOrder(CurriculumOptions options, std::int64_t num_samples,
                                 std::int64_t global_batch)
    : options_(std::move(options)), num_samples_(num_samples), global_batch_(global_batch) {
  batches_ = std::make_unique<CurriculumBatches>(options_, num_samples_, global_batch_);
}

std::shared_ptr<const std::vector<std::int64_t>> CurriculumOrder::batch(std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  if (step < drawn_ - static_cast<std::int64_t>(recent_.size())) {
    batches_ = std::make_unique<CurriculumBatches>(options_, num_samples_, global_batch_);
    recent_.clear();
    drawn_ = 0;
  }
  for (; drawn_ <= step; ++drawn_) {
    recent_.push_back(std::make_shared<const std::vector<std::int64_t>>(batches_->next()));
    if (recent_.size() > kRecent) {
      recent_.pop_front();
    }
  }
  return recent_[recent_.size() - static_cast<std::size_t>(drawn_ - step)];
}

}  // namespace bloomery
