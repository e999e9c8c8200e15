#include "train/step/step_graphs.h"

#include <utility>

#include "base/error.h"
#include "device/memory_source.h"
#include "train/step/rank_options.h"

namespace bloomery {
namespace {

constexpr int kMostCaptures = 16;  // of a run whose memory or shapes keep changing

}  // namespace

StepGraphs::StepGraphs(Stream& stream, GraphChoice choice)
    : stream_(stream),
      trial_(choice),
      slots_(stream),
      grad_scale_(Tensor::empty(stream, DType::fp32, {1})) {}

StepGraphs::MemoryState StepGraphs::memory_state() const {
  return {stream_.device().memory()->in_use(), num_parts_};
}

std::int64_t StepGraphs::num_device_calls() const {
  return stream_.memory()->statistics().num_device_calls;
}

// A step that was launched on the same memory state and asked for no memory shows that a capture,
// which asks for the same, needs none either.
bool StepGraphs::begin_step(std::int64_t num_parts) {
  if (num_parts != std::exchange(num_parts_, num_parts)) {
    trial_.start_over();  // unless it is over: times are those of other steps
  }
  const MemoryState now = memory_state();
  steady_ = now == std::exchange(begun_on_, now);
  device_calls_ = num_device_calls();
  num_launched_ = num_replayed_ = 0;
  captures_ = trial_.wants_graphs() && steady_ && last_ == GraphTrial::Step::launched &&
              !(passes_[0] && captured_on_ == now);
  if (captures_ && num_captures_ == kMostCaptures) {
    trial_.give_up("memory or shapes of the run keep changing");
    captures_ = false;
  }
  return captures_;
}

void StepGraphs::capture(std::int64_t num_micro_batches, const LaunchPasses& launch) {
  drop();
  ++num_captures_;
  try {
    for (std::size_t i = 0; i < passes_.size() && std::cmp_less(i, num_micro_batches); ++i) {
      passes_[i] = std::make_unique<Passes>();
      passes_[i]->graph.capture(
          stream_, [&] { launch(static_cast<std::int64_t>(i), &passes_[i]->contributions); });
    }
    captured_on_ = begun_on_;
  } catch (const Error& error) {
    drop();
    trial_.give_up(error.what());
  }
}

// The device may still be at work on them.
void StepGraphs::drop() {
  if (passes_[0]) {
    stream_.synchronize();
  }
  passes_ = {};
}

void StepGraphs::fill(const Batch& batch) {
  if (!slots_.fill(batch)) {
    drop();
  }
}

const std::vector<Parameter*>* StepGraphs::replay(std::int64_t micro_batch) {
  Passes* const passes = passes_[micro_batch > 0 ? 1 : 0].get();
  if (!trial_.wants_graphs() || passes == nullptr || memory_state() != captured_on_) {
    ++num_launched_;
    return nullptr;
  }
  passes->graph.replay(stream_);
  ++num_replayed_;
  return &passes->contributions;
}

GraphTrial::Step StepGraphs::end_step() {
  const bool warm = steady_ && num_device_calls() == device_calls_;
  last_ = captures_                                 ? GraphTrial::Step::other
          : num_launched_ == 0 && num_replayed_ > 0 ? GraphTrial::Step::replayed
          : num_replayed_ == 0 && warm              ? GraphTrial::Step::launched
                                                    : GraphTrial::Step::other;
  trial_.begun(last_);
  return last_;
}

void StepGraphs::add_time(GraphTrial::Step kind, std::int64_t num_parts, double seconds) {
  if (num_parts == num_parts_) {
    trial_.add_time(kind, seconds);
  }
}

std::unique_ptr<StepGraphs> make_step_graphs(const RankOptions& options, int num_ranks,
                                             Stream& stream) {
  const bool captures = options.graphs != GraphChoice::off &&
                        graph_refusal(options, num_ranks, stream.device().kind()).empty();
  return captures ? std::make_unique<StepGraphs>(stream, options.graphs) : nullptr;
}

}  // namespace bloomery
