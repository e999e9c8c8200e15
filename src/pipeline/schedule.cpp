#include "pipeline/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

// Writes down what a stage does, with the transfers that go with it.
class Writer {
 public:
  Writer(int stage, int num_stages, std::int64_t num_micro_batches)
      : first_(stage == 0), last_(stage == num_stages - 1) {
    check(0 <= stage && stage < num_stages && num_micro_batches >= 1, "pipeline: no schedule for ",
          num_micro_batches, " micro-batches in stage ", stage, " of ", num_stages);
  }

  void forward(std::int64_t m) {
    add(!first_, Work::receive_activation, m);
    add(true, Work::forward, m);
    add(!last_, Work::send_activation, m);
  }
  void backward(std::int64_t m, Work work) {
    add(!last_, Work::receive_gradient, m);
    add(true, work, m);
    add(!first_, Work::send_gradient, m);
  }
  void weights(std::int64_t m) { add(true, Work::backward_weight, m); }

  Instructions take() { return std::move(list_); }

 private:
  void add(bool happens, Work work, std::int64_t m) {
    if (happens) {
      list_.push_back({work, m});
    }
  }
  bool first_, last_;
  Instructions list_;
};

bool goes_forward(Work work) {
  return work == Work::receive_activation || work == Work::send_activation;
}

}  // namespace

std::vector<std::span<const Instruction>> steps(std::span<const Instruction> list) {
  std::vector<std::span<const Instruction>> all;
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = begin + 1;
    while (list[begin].is_transfer() && end < list.size() && list[end].is_transfer()) {
      ++end;
    }
    all.push_back(list.subspan(begin, end - begin));
    begin = end;
  }
  return all;
}

int peer_stage(const Instruction& transfer, int stage, int num_stages) {
  const bool sends = transfer.work == Work::send_activation || transfer.work == Work::send_gradient;
  const int step = sends == goes_forward(transfer.work) ? 1 : num_stages - 1;
  return (stage + step) % num_stages;
}

Instructions forward_only(int stage, int num_stages, std::int64_t num_micro_batches) {
  Writer writer(stage, num_stages, num_micro_batches);
  for (std::int64_t m = 0; m < num_micro_batches; ++m) {
    writer.forward(m);
  }
  return writer.take();
}

Instructions one_forward_one_backward(int stage, int num_stages, std::int64_t num_micro_batches) {
  Writer writer(stage, num_stages, num_micro_batches);
  const std::int64_t ahead = std::min<std::int64_t>(num_stages - 1 - stage, num_micro_batches);
  for (std::int64_t m = 0; m < num_micro_batches + ahead; ++m) {
    if (m < num_micro_batches) {
      writer.forward(m);
    }
    if (m >= ahead) {
      writer.backward(m - ahead, Work::backward);
    }
  }
  return writer.take();
}

Instructions zero_bubble(int stage, int num_stages, std::int64_t num_micro_batches) {
  Writer writer(stage, num_stages, num_micro_batches);
  const std::int64_t ahead = std::min<std::int64_t>(num_stages - 1 - stage, num_micro_batches);
  std::int64_t next_weights = 0;
  for (std::int64_t m = 0; m < num_micro_batches + ahead; ++m) {
    if (m < num_micro_batches) {
      writer.forward(m);
    }
    if (m >= ahead) {
      writer.backward(m - ahead, Work::backward_input);
      if (m - ahead >= stage) {
        writer.weights(next_weights++);
      }
    }
  }
  while (next_weights < num_micro_batches) {
    writer.weights(next_weights++);
  }
  return writer.take();
}

}  // namespace bloomery
