#include "train/step/rank.h"

#include <algorithm>

#include "comm/watch/recorded.h"
#include "train/step/pass_readers.h"
#include "train/step/teacher.h"

namespace bloomery {
namespace {

// Figures that layers report beside their losses have other names.
double sum_of_losses(const Losses& losses) {
  double sum = 0;
  for (const NamedLoss& each : losses) {
    sum += each.name.ends_with("loss") ? each.value : 0;
  }
  return sum;
}

}  // namespace

Rank::Rank(const RankOptions& options, std::unique_ptr<Communicator> world)
    : stage_(options, std::move(world)),
      losses_(stage_.stream(), stage_.mesh(), accumulation_dtype(options.dtype)),
      runner_(stage_, losses_),
      recorder_(recorder_of(stage_.mesh().world())) {}

Rank::~Rank() = default;

void Rank::set_position(std::int64_t iteration, const char* work) {
  if (recorder_ != nullptr) {
    recorder_->set_iteration(iteration);
    recorder_->set_work(work);
  }
}

void Rank::set_work(const char* work) {
  if (recorder_ != nullptr) {
    recorder_->set_work(work);
  }
}

void Rank::enqueue_gradients(const StepInput& input) { runner_.enqueue_gradients(input); }

void Rank::enqueue_reduction() {
  set_work("sums of gradients");
  runner_.enqueue_reduction();
}

void Rank::enqueue_update(std::int64_t schedule_units, bool stop) {
  set_work("optimizer");
  losses_.publish(stop);
  // The squared norm and, with it, overflow: over the axes along which the shards differ.
  Communicator* const groups[] = {&mesh().axes(store().norm_axes())};
  store().wait_gathers();
  optimizer().step(groups, schedule_units);
  store().gather_updated_values();
  stage_.features().end_step();
  runner_.end_step();
}

Rank::Outcome Rank::outcome(int age) {
  const auto [named, stop] = losses_.step(age);
  Losses losses = named;
  if (stage_.teacher() != nullptr) {
    losses.insert(losses.begin(), {"total loss", sum_of_losses(losses)});
  }
  const StepClock::Step& time = runner_.clock().step(age);
  return {.loss = losses.front().value,
          .losses = losses,
          .stop = stop,
          .update = stage_.optimizer().report(age),
          .seconds = time.seconds(),
          .waited = time.waited()};
}

double Rank::accumulate(std::span<const HostBatch> micro_batches) {
  enqueue_gradients({.num_micro_batches = std::ssize(micro_batches), .batch = [&](std::int64_t m) {
                       return upload(micro_batches[static_cast<std::size_t>(m)]);
                     }});
  enqueue_reduction();
  return losses_.means().front().value;
}

Rank::Result Rank::step(std::span<const HostBatch> micro_batches) {
  Result result;
  result.loss = accumulate(micro_batches);
  std::int64_t num_samples = 0;
  for (const HostBatch& batch : micro_batches) {
    num_samples += batch.num_samples();
  }
  enqueue_update(num_samples);
  result.grad_norm = optimizer().report(0).grad_norm;
  return result;
}

Losses Rank::evaluate(const StepInput& input) {
  losses_.begin(input.num_micro_batches * mesh().degree(Axis::data));
  runner_.run_forward(input, losses_);
  Losses losses = losses_.means();
  if (Teacher* const teacher = stage_.teacher()) {  // which has no part in evaluations
    std::erase_if(losses, [&](const NamedLoss& loss) { return loss.name == teacher->loss_name(); });
  }
  return losses;
}

std::vector<float> Rank::answers(const StepInput& input) {
  AnswerReader reader(stream());
  runner_.run_forward(input, reader);
  stream().synchronize();
  return reader.answers;
}

Rank::AnswerLogps Rank::answer_logps(const StepInput& input) {
  LogpReader reader(stream());
  runner_.run_forward(input, reader);
  return {std::move(reader.answers), std::move(reader.logps)};
}

}  // namespace bloomery
