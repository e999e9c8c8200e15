#include "train/step/loss_board.h"

#include <algorithm>
#include <sstream>

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostLosses = 12;
// Places in the statistics, behind the losses.
constexpr std::int64_t kStop = kMostLosses, kNewNames = kStop + 1, kNumStatistics = kNewNames + 1;

Tensor device_one(Stream& stream, DType dtype) {
  return dtype == DType::fp64 ? Tensor::from_host<double>(stream, {1}, {1})
                              : Tensor::from_host<float>(stream, {1}, {1});
}

}  // namespace

LossBoard::LossBoard(Stream& stream, Mesh& mesh, DType dtype)
    : stream_(stream),
      mesh_(mesh),
      statistics_(Tensor::zeros(stream, dtype, {kNumStatistics})),
      one_(device_one(stream, dtype)),
      readback_(stream, dtype, kNumStatistics) {}

void LossBoard::begin(std::int64_t num_parts) {
  factor_ = 1 / static_cast<double>(num_parts);
  stream_.fill(statistics_.data(), 0, statistics_.bytes());
}

// In the statistics of this rank.
std::int64_t LossBoard::place_of(const std::string& name) {
  const auto found = std::find(own_names_.begin(), own_names_.end(), name);
  const auto place = found - own_names_.begin();
  if (found == own_names_.end()) {
    check(place < kMostLosses, "a model may report ", kMostLosses, " losses at most");
    own_names_.push_back(name);
  }
  return place;
}

void LossBoard::read(const Batch&, const Metrics& metrics) {
  for (const Metrics::Entry& entry : metrics.entries()) {
    const std::string name(entry.name);
    if (entry.beside) {
      names_beside_.insert(name);
    }
    launch(stream_, ScaleAdd{.x = entry.value,
                             .y = statistics_.range(place_of(name), {1}),
                             .factor = static_cast<float>(factor_ * entry.factor),
                             .add = true});
  }
}

// Losses differ between data-parallel ranks, are sums over those that cut a sequence, and of a
// pipeline each stage has some, or a part of their sum.
void LossBoard::sum(const Tensor& statistics) {
  if (names_ != own_names_) {
    const Tensor own = Tensor::empty(stream_, statistics.dtype(), {kMostLosses});
    stream_.copy(own.data(), statistics.data(), own.bytes());
    stream_.fill(statistics.data(), 0, own.bytes());
    for (std::size_t i = 0; i < own_names_.size(); ++i) {
      const auto place = std::find(names_.begin(), names_.end(), own_names_[i]);
      if (place != names_.end()) {
        launch(stream_, ScaleAdd{.x = own.range(static_cast<std::int64_t>(i), {1}),
                                 .y = statistics.range(place - names_.begin(), {1})});
      }
    }
  }
  mesh_.axes(axis_set(Axis::data, Axis::context, Axis::pipeline))
      .all_reduce(statistics.range(0, {kMostLosses}), Reduce::sum, stream_);
}

void LossBoard::publish(bool stop) {
  if (stop) {
    launch(stream_, ScaleAdd{.x = one_, .y = statistics_.range(kStop, {1})});
  }
  if (mesh_.axis(Axis::pipeline).size() == 1 || num_published_ == 0 || news_of_names()) {
    learn_names();
  }
  if (!knows_own_names()) {
    launch(stream_, ScaleAdd{.x = one_, .y = statistics_.range(kNewNames, {1})});
  }
  sum(statistics_);
  // Any rank may want to stop, or have news: over all axes.
  mesh_.world().all_reduce(statistics_.range(kStop, {kNumStatistics - kStop}), Reduce::sum,
                           stream_);
  readback_.publish(statistics_);
  ++num_published_;
}

// Whether a stage reported a loss that the others do not know. A step is looked at two steps later,
// the same one on all ranks, when nobody has to wait for the device to hear of it.
bool LossBoard::news_of_names() const {
  return num_published_ >= 2 && readback_.read(1)[kNewNames] > 0;
}

bool LossBoard::knows_own_names() const {
  return std::ranges::all_of(own_names_, [this](const std::string& name) {
    return std::ranges::find(names_, name) != names_.end();
  });
}

// The stages of a pipeline tell each other. Losses come first, those of the last stage before all;
// what is reported later comes behind what is known.
void LossBoard::learn_names() {
  Communicator& pipeline = mesh_.axis(Axis::pipeline);
  if (pipeline.size() == 1) {
    names_ = own_names_;
    return;
  }
  std::string names;
  for (const std::string& name : own_names_) {
    names += (names_beside_.contains(name) ? "1" : "0") + name + '\n';
  }
  const std::vector<std::string> all = pipeline.host().gather("names of losses", names);
  for (const char beside : {'0', '1'}) {
    for (auto stage = all.rbegin(); stage != all.rend(); ++stage) {
      std::istringstream lines(*stage);
      for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(1);
        if (line.front() == beside && std::ranges::find(names_, name) == names_.end()) {
          names_.push_back(name);
        }
      }
    }
  }
  check(names_.size() <= kMostLosses, "a model may report ", kMostLosses, " losses at most");
}

Losses LossBoard::named(const std::vector<double>& numbers) const {
  Losses losses;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    losses.push_back({names_[i], numbers[i]});
  }
  return losses;
}

LossBoard::Step LossBoard::step(int age) const {
  const std::vector<double> numbers = readback_.read(age);
  return {named(numbers), numbers[kStop] > 0};
}

Losses LossBoard::means() {
  learn_names();
  const Tensor sums = Tensor::empty(stream_, statistics_.dtype(), statistics_.shape());
  stream_.copy(sums.data(), statistics_.data(), sums.bytes());
  sum(sums);
  Readback result(stream_, sums.dtype(), sums.numel());
  result.publish(sums);
  return named(result.read(0));
}

}  // namespace bloomery
