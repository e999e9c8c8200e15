#include "train/run/stragglers.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "comm/watch/recorded.h"

namespace bloomery {
namespace {

constexpr double kLeastSeconds = 0.5;  // of computing: less than that is noise

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

Stragglers::Stragglers(Rank& rank, std::int64_t percent)
    : rank_(rank),
      percent_(percent),
      hosts_(rank.mesh().host().gather("hosts of ranks", host_name())) {}

void Stragglers::add(const Rank::Outcome& step) {
  // Without a stream of their own sums are among the calls of the computation's.
  seconds_ += step.seconds - (rank_.stage().reductions_stream() != nullptr ? step.waited : 0);
  ++steps_;
}

std::string Stragglers::report() {
  FlightRecorder* const recorder = recorder_of(rank_.mesh().world());
  const double calls = recorder == nullptr ? 0 : recorder->seconds_in_calls(rank_.stream());
  const double computed = seconds_ - (calls - calls_);
  const std::vector<double> mine = {static_cast<double>(rank_.mesh().coordinate(Axis::pipeline)),
                                    computed,
                                    static_cast<double>(std::max<std::int64_t>(steps_, 1))};
  calls_ = calls;
  seconds_ = 0;
  steps_ = 0;
  const auto all = rank_.mesh().host().gather_numbers("stragglers", mine);
  return rank_.mesh().host().rank() == 0 ? find_slow(all) : "";
}

std::string Stragglers::find_slow(const std::vector<std::vector<double>>& ranks) {
  ++reports_;
  std::map<double, std::vector<double>> stages;
  for (const std::vector<double>& each : ranks) {
    stages[each[0]].push_back(each[1]);
  }
  int slowest = -1;
  double most = 1 + static_cast<double>(percent_) / 100;  // of the median
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const std::vector<double>& each = ranks[static_cast<std::size_t>(rank)];
    const double usual = median(stages[each[0]]);
    if (usual > kLeastSeconds && each[1] > most * usual) {
      most = each[1] / usual;
      slowest = rank;
    }
  }
  if (slowest < 0) {
    return "";
  }
  ++times_[slowest];
  const std::vector<double>& it = ranks[static_cast<std::size_t>(slowest)];
  return fmt::format(
      "rank {} on {} computes slower than others: {:.1f} ms of each step, and the median rank of "
      "its "
      "kind {:.1f} ms; all wait for it",
      slowest, hosts_[static_cast<std::size_t>(slowest)], it[1] / it[2] * 1e3,
      it[1] / most / it[2] * 1e3);
}

std::string Stragglers::summary() const {
  std::string text;
  for (const auto& [rank, times] : times_) {
    text += fmt::format("{}rank {} on {} in {}", text.empty() ? "" : ", ", rank,
                        hosts_[static_cast<std::size_t>(rank)], times);
  }
  return text.empty()
             ? ""
             : fmt::format("ranks that computed slower than others: {} of {} log intervals", text,
                           reports_);
}

}  // namespace bloomery
