#include "train/step/graph_choice.h"

#include <algorithm>

#include "base/number_text.h"
#include "pipeline/schedule.h"
#include "train/step/rank_options.h"

namespace bloomery {

std::string graph_refusal(const RankOptions& options, int num_ranks, DeviceKind device) {
  if (device != DeviceKind::cuda) {
    return "there is no GPU";
  }
  if (num_ranks > 1) {
    return "several ranks communicate in their passes";
  }
  if (options.layout.chunks > 1 || !row_of(options.layout.schedule).keeps_order) {
    return "passes of several micro-batches are mixed";
  }
  if (options.offload.any() || options.offload.values) {
    return "memory of the host takes part in the step (offloading)";
  }
  if (options.sequence_chunk > 0) {
    return "layers compute sequences in chunks";
  }
  if (options.teacher) {
    return "a teacher runs beside the model";
  }
  if (!options.token_dropping_layers.empty() || options.layer_drop) {
    return "layers drop other tokens, or other layers are dropped, in each step";
  }
  if (!options.grids.empty()) {
    return "the bits of weights and activations follow the number of the step";
  }
  return {};
}

void GraphTrial::Times::add(double seconds) {
  least = count++ == 0 ? seconds : std::min(least, seconds);
}

void GraphTrial::add_time(Step kind, double seconds) {
  if (kind == Step::launched) {
    launched_.add(seconds);
  } else if (kind == Step::replayed) {
    replayed_.add(seconds);
  }
}

bool GraphTrial::wants_graphs() const {
  if (choice_ == GraphChoice::off || !given_up_.empty() || num_launched_ < kSteps) {
    return false;
  }
  return choice_ == GraphChoice::on || replayed_.count < kSteps || pays();
}

bool GraphTrial::settled() const {
  return choice_ == GraphChoice::off || !given_up_.empty() || replayed_.count >= kSteps;
}

void GraphTrial::start_over() {
  if (!settled()) {
    *this = GraphTrial(choice_);
  }
}

void GraphTrial::give_up(const std::string& why) { given_up_ = why; }

std::string GraphTrial::verdict() const {
  if (!given_up_.empty()) {
    return concat(" passes are not replayed as CUDA graphs: ", given_up_);
  }
  if (!settled() || choice_ == GraphChoice::off) {
    return {};
  }
  return concat(wants_graphs() ? " passes are replayed as CUDA graphs: "
                               : " passes are launched, not replayed as CUDA graphs: ",
                fixed(replayed_.least * 1e3, 2), " ms a step, launched ",
                fixed(launched_.least * 1e3, 2), " ms");
}

}  // namespace bloomery
