// Whether a rank replays its passes as CUDA graphs: what the options say, why it cannot, and, where
// it may choose, which is faster.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.h"

namespace bloomery {

struct RankOptions;

// automatic: where replayed steps are faster than launched ones; on: wherever they can be captured.
enum class GraphChoice : std::uint8_t { automatic, on, off };

// Why such a rank cannot capture its passes; empty: it can.
std::string graph_refusal(const RankOptions& options, int num_ranks, DeviceKind device);

// The trial of a run: two steps are launched that count (their plans are made, their memory is in
// the pool), then steps are replayed until the times of two are known. The less of either side is
// compared; no number that a step computes depends on the outcome.
class GraphTrial {
 public:
  enum class Step : std::uint8_t { other, launched, replayed };

  explicit GraphTrial(GraphChoice choice) : choice_(choice) {}

  void begun(Step kind) { num_launched_ += kind == Step::launched ? 1 : 0; }
  // By the device's clock, once they are known, in the order of the steps.
  void add_time(Step kind, double seconds);
  void give_up(const std::string& why);  // they cannot be captured
  void start_over();                     // steps are others from here on; not once it is settled

  bool wants_graphs() const;  // now
  bool settled() const;       // for good
  // What a log says of the outcome; empty: it is open, or nobody asked for graphs.
  std::string verdict() const;

 private:
  struct Times {
    int count = 0;
    double least = 0;
    void add(double seconds);
  };
  static constexpr int kSteps = 2;  // of either kind
  bool pays() const { return replayed_.least <= launched_.least; }

  GraphChoice choice_;
  int num_launched_ = 0;
  Times launched_, replayed_;
  std::string given_up_;
};

}  // namespace bloomery
