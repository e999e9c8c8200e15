#include "apps/bench/replay.h"

#include <cmath>

namespace bloomery {

double sustained_seconds(Stream& stream, const std::function<void()>& pass, double least) {
  Device& device = stream.device();
  const auto repeated = [&](std::int64_t times) {
    Event start(device), stop(device);
    start.record(stream);
    for (std::int64_t i = 0; i < times; ++i) {
      pass();
    }
    stop.record(stream);
    stop.synchronize();
    return stop.seconds_since(start) / static_cast<double>(times);
  };
  const auto times_for = [&](double once) {
    return static_cast<std::int64_t>(std::ceil(least / std::max(once, 1e-7)));
  };
  repeated(1);  // chooses plans and touches memory
  return repeated(times_for(repeated(times_for(repeated(1)))));
}

void Replay::add(const std::string& kind, double flops, const ProfileRow& row, const Make& make) {
  const auto [place, is_new] = numbers_.try_emplace(kind, kinds_.size());
  if (is_new) {
    kinds_.push_back({kind, flops, 0, 0, make(setup_)});
  }
  ++kinds_[place->second].count;
  order_.push_back({place->second, row});
}

std::vector<double> Replay::times_in_one_pass() {
  std::vector<std::unique_ptr<Event>> events;
  const auto record = [&] {
    events.push_back(std::make_unique<Event>(setup_.stream.device()));
    events.back()->record(setup_.stream);
  };
  record();
  for (const Launch& launch : order_) {
    kinds_[launch.kind].launch();
    record();
  }
  setup_.stream.synchronize();
  std::vector<double> times;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    times.push_back(events[i + 1]->seconds_since(*events[i]));
  }
  return times;
}

double Replay::run(double least, std::map<ProfileRow, double>& by_row) {
  if (order_.empty()) {
    return 0;
  }
  const auto pass = [&] {
    for (const Launch& launch : order_) {
      kinds_[launch.kind].launch();
    }
  };
  const double all = sustained_seconds(setup_.stream, pass, least);
  const std::vector<double> times = times_in_one_pass();
  double sum = 0;
  for (const double time : times) {
    sum += time;
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const double share = times[i] / sum * all;  // events between launches take time too
    kinds_[order_[i].kind].seconds += share;
    by_row[order_[i].row] += share;
  }
  return all;
}

}  // namespace bloomery
