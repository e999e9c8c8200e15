#include "train/run/timers.h"

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
  } catch (...) {  // NOLINT(bugprone-empty-catch): a stream that failed says it again
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  timers_->seconds_[name_] += elapsed.count();
}

double Timers::milliseconds(const std::string& name) const {
  const auto found = seconds_.find(name);
  return found == seconds_.end() ? 0 : found->second * 1e3;
}

std::vector<TimerReport> Timers::read(const std::vector<std::string>& names, double normalizer,
                                      HostGroup& world) const {
  std::vector<double> mine;
  for (const std::string& name : names) {
    mine.push_back(milliseconds(name) / normalizer);
  }
  const std::vector<std::vector<double>> all = world.gather_numbers("timers", mine);
  std::vector<TimerReport> reports;
  for (std::size_t i = 0; i < names.size(); ++i) {
    TimerReport report{.name = names[i], .rank_ms = {}};
    for (const std::vector<double>& of_rank : all) {
      report.rank_ms.push_back(of_rank.at(i));
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<TimerReport> Timers::collect(const std::vector<std::string>& names, double normalizer,
                                         HostGroup& world) {
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
