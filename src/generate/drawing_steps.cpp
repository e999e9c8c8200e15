// What the steps of BatchSampler do on the device.
#include "generate/batch_sampler.h"
#include "generate/resident/paired.h"
#include "generate/resident/resident.h"
#include "tensor/quantized.h"

namespace bloomery {

BatchSampler::Work& BatchSampler::work() {
  const auto [place, fresh] = works_.try_emplace(shape_);
  Work& work = place->second;
  if constexpr (build::cuda) {
    const DType dtype = first_logits_.dtype();
    // Codes of half a byte have kernels of their own.
    const bool halves = decoder_.holds_weights_in(QuantizedFormat::nf4);
    if (!fresh || !own_stream_ || !stream().on_cuda() || decoder_.is_divided()) {
      return work;
    }
    const auto run_by = [&](auto steps) {
      work.together = [steps](const std::function<void()>& step) { steps->run(step); };
    };
    if (!halves && ResidentSteps::possible(stream().device(), dtype, shape_.rows)) {
      run_by(std::make_shared<ResidentSteps>(stream(), dtype, shape_.rows));
    } else {
      run_by(std::make_shared<PairedKernels>(stream()));
    }
  }
  return work;
}

void BatchSampler::enqueue() {
  Step& step = steps_[static_cast<std::size_t>(num_enqueued_ % ahead_)];
  step = {};
  if (first_new_) {
    step = {.first = *first_new_, .fed = false};
    draw(first_logits_, step, true);
    first_new_.reset();
  } else if (decoder_.cache() == nullptr) {
    std::vector<std::vector<TokenId>> tokens;
    for (const Row& row : rows_) {
      tokens.push_back({row.token});
    }
    decoder_.feed(tokens);
    draw(decoder_.device_logits(), step, false);
  } else {
    run_step();
  }
  written_[static_cast<std::size_t>(num_enqueued_ % ahead_)]->record(stream());
  ++num_enqueued_;
}

// The first steps make the plans of products and get the memory that a captured one may not ask
// for. Steps that several ranks do together are not captured: hosts tell each other of them.
void BatchSampler::run_step() {
  constexpr int kWarmUp = 2;
  Work& work = this->work();
  if (!stream().on_cuda() || decoder_.is_divided() || work.num_eager < kWarmUp) {
    step_work(work);
    ++work.num_eager;
    return;
  }
  if (!work.graph) {
    work.graph.emplace().capture(stream(), [&] { step_work(work); });
  }
  work.graph->replay(stream());
}

void BatchSampler::step_work(Work& work) {
  const StepRows rows{state_.range(0, {StepRows::kNumFields * capacity_}), capacity_};
  Tensor logits;
  const auto forward = [&] { logits = decoder_.step(stream(), rows, shape_.rows); };
  if (work.together) {
    work.together(forward);
  } else {
    forward();
  }
  draw(logits, {}, false);
}

// `with_rows`: sequences may share rows of the logits.
void BatchSampler::draw(const Tensor& logits, const Step& step, bool with_rows) {
  const auto first = static_cast<std::int64_t>(step.first);
  const std::int64_t count =
      step.fed ? shape_.rows : static_cast<std::int64_t>(rows_.size()) - first;
  auto* const state = static_cast<std::int32_t*>(state_.data());
  const auto field = [&](Field which) { return state + which * capacity_ + first; };
  auto* const logs = static_cast<float*>(log_probabilities_.data()) + first;
  auto* const occurred = static_cast<std::uint32_t*>(occurred_.data());
  auto* const biases = static_cast<float*>(biases_.data());
  std::int32_t* const number = state + kNumFields * capacity_;
  const std::int32_t* const logit_rows = with_rows ? field(kLogitRows) : nullptr;
  launch(
      stream(),
      SampleTokens{.options = static_cast<const SamplingOptions*>(sampling_.data()) + first,
                   .count = count,
                   .logits = logits,
                   .vocabulary = vocabulary(),
                   .logit_rows = logit_rows,
                   .active = field(kActive),
                   .keys = static_cast<const RandomKey*>(keys_.data()) + first,
                   .drawn = field(kDrawn),
                   .occurred = shape_.occurred ? occurred + first * 2 * occurred_words(vocabulary())
                                               : nullptr,
                   .biases = shape_.biases ? biases + first * vocabulary() : nullptr,
                   .tokens = field(kTokens),
                   .log_probabilities = logs});
  if (shape_.alternatives) {
    launch(stream(),
           TopTokens{.count = count,
                     .logits = logits,
                     .vocabulary = vocabulary(),
                     .logit_rows = logit_rows,
                     .active = field(kActive),
                     .step = number,
                     .ring = static_cast<Drawn*>(top_ring_->data()) + first * TopTokens::kMost,
                     .ring_steps = ahead_,
                     .ring_rows = capacity_});
  }
  AdvanceRows advance{.count = count,
                      .fed = step.fed,
                      .tokens = field(kTokens),
                      .log_probabilities = logs,
                      .lengths = field(kLengths),
                      .active = field(kActive),
                      .left = field(kLeft),
                      .step = number,
                      .ring = static_cast<Drawn*>(ring_->data()) + first,
                      .ring_steps = ahead_,
                      .ring_rows = capacity_};
  for (const TokenId end : ends_) {
    if (advance.num_ends < AdvanceRows::kMaxEnds) {
      advance.ends[advance.num_ends++] = end;
    }
  }
  launch(stream(), advance);
}

}  // namespace bloomery
