#include "train/timers.h"

namespace bloomery {

Timers::Scope::Scope(Timers* timers, const char* name) : timers_(timers), name_(name) {
  if (timers_ != nullptr) {
    timers_->stream_.synchronize();
    start_ = std::chrono::steady_clock::now();
  }
}

Timers::Scope::~Scope() {
  if (timers_ == nullptr) {
    return;
  }
  try {
    timers_->stream_.synchronize();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the next call on the stream says it
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  timers_->seconds_[name_] += elapsed.count();
}

double Timers::milliseconds(const std::string& name) const {
  const auto found = seconds_.find(name);
  return found == seconds_.end() ? 0 : found->second * 1e3;
}

std::vector<TimerReport> Timers::read(const std::vector<std::string>& names, double normalizer,
                                      Communicator& world) const {
  std::vector<double> mine;
  for (const std::string& name : names) {
    mine.push_back(milliseconds(name) / normalizer);
  }
  const auto count = static_cast<std::int64_t>(names.size());
  const Tensor part = Tensor::from_host(stream_, mine, {count});
  const Tensor whole = Tensor::empty(stream_, DType::fp64, {count * world.size()});
  world.all_gather(part, whole, stream_);
  const std::vector<double> all = whole.to_host<double>(stream_);
  std::vector<TimerReport> reports;
  for (std::size_t i = 0; i < names.size(); ++i) {
    TimerReport report{.name = names[i], .rank_ms = {}};
    for (std::size_t at = i; at < all.size(); at += names.size()) {
      report.rank_ms.push_back(all[at]);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<TimerReport> Timers::collect(const std::vector<std::string>& names, double normalizer,
                                         Communicator& world) {
  std::vector<TimerReport> reports = read(names, normalizer, world);
  for (const std::string& name : names) {
    seconds_.erase(name);
  }
  return reports;
}

const std::vector<std::string>& iteration_timers() {
  static const std::vector<std::string> names = {"forward-backward", "forward-compute",
                                                 "backward-compute", "batch-generator",
                                                 "grads-all-reduce", "optimizer"};
  return names;
}

}  // namespace bloomery
