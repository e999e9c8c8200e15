#include "train/plan/curriculum_problems.h"

#include <algorithm>
#include <set>

#include "base/findings.h"
#include "samples/curriculum/batches.h"
#include "samples/sequence_rows.h"
#include "train/plan/plan.h"

namespace bloomery {
namespace {

// Whether the ranks that hold parts of a micro-batch can divide `length` tokens of each of its
// `sequences`.
bool divides(const PretrainOptions& o, std::int64_t length, std::int64_t sequences) {
  const ParallelOptions& p = o.parallel;
  const std::int64_t parts = p.ring == 1 ? p.sequence : 2 * p.context();
  const std::int64_t tokens = sequences * length / p.context();
  return length % parts == 0 && (!p.sequence_parallel || tokens % p.tensor == 0);
}

void check_lengths(const PretrainOptions& o, const std::string& name,
                   const DifficultySchedule& schedule, bool reshape, Findings& f) {
  constexpr std::int64_t kMostLengths = 1'000'000;
  f.require(schedule.max <= kMostLengths, name, ": sequences of ", schedule.max,
            " tokens are longer than any here");
  if (schedule.max > kMostLengths) {
    return;
  }
  for (const std::int64_t each : schedule.values()) {
    const std::int64_t full = o.data.seq_length, length = std::min(each, full);
    const std::int64_t rows = reshape ? reshaped_rows(o.batch.micro, full, length) : o.batch.micro;
    if (!divides(o, length, rows)) {
      return f.require(false, name, ": ", rows, " sequences of ", length,
                       " tokens, which it comes to, cannot be divided among the ranks that hold "
                       "parts of them; give other multiples of lengths");
    }
  }
}

void check_samples(const PretrainOptions& o, const std::string& name, Findings& f) {
  f.require(find_family(o.model.family).has_one_stack(), name,
            ": it is for decoders and BERT, not for ", o.model.family);
  f.require(!o.task.enabled(), name, ": it is not for tasks; leave it out");
  f.require(!o.instruct.enabled, name, ": it is not for records of instructions; leave it out");
}

void check_rates(const PretrainOptions& o, const std::string& name, Findings& f) {
  f.require(!o.rate.warmup_tokens || o.rate.decay_tokens, name,
            ": --lr-warmup-tokens needs --lr-decay-tokens here, as samples have more tokens from "
            "step to step");
}

void check_curriculum(const PretrainOptions& o, Findings& f) {
  const std::string name = "curriculum_learning";
  const std::vector<std::string> wrong = problems(o.curriculum.schedule, name);
  f.add(wrong);
  check_samples(o, name, f);
  check_rates(o, name, f);
  if (wrong.empty()) {
    check_lengths(o, name, o.curriculum.schedule, false, f);
  }
}

void check_sampling(const PretrainOptions& o, Findings& f) {
  const std::string name = "data_efficiency.data_sampling";
  check_samples(o, name, f);
  check_rates(o, name, f);
  f.require(o.batch.rampup.empty(), name,
            ": the curriculum draws whole batches of one size; leave out --rampup-batch-size");
  f.require(!o.curriculum.enabled, name,
            " and curriculum_learning exclude each other: the metric seqlen_truncate is the like "
            "of the latter");
  f.attempt([&] {
    const StepLengths lengths = step_lengths(o);
    f.require(!lengths.reshape || find_family(o.model.family).is_decoder(), name,
              ": seqlen_reshape is for decoders; give seqlen_truncate");
    if (lengths.curriculum) {
      check_lengths(o, name, *lengths.curriculum, lengths.reshape, f);
    }
  });
}

void check_random_ltd(const PretrainOptions& o, Findings& f) {
  const std::string name = "random_ltd";
  const RandomLtdFlags& ltd = o.random_ltd;
  const ModelOptions& m = o.model;
  const std::vector<std::string> wrong = problems(ltd.schedule, name);
  f.add(wrong);
  check_samples(o, name, f);
  check_rates(o, name, f);
  const std::set<std::int64_t> distinct(ltd.layers.begin(), ltd.layers.end());
  f.require(static_cast<std::int64_t>(ltd.layers.size()) == ltd.num_layers &&
                distinct.size() == ltd.layers.size() && !distinct.empty() &&
                *distinct.rbegin() < m.num_layers,
            name, ": random_ltd_layer_id must name random_ltd_layer_num (", ltd.num_layers,
            ") different layers, 0 to ", m.num_layers - 1);
  f.require(ltd.total_layers == m.num_layers, name, ": total_layer_num is ", ltd.total_layers,
            ", and the model has ", m.num_layers, " layers");
  f.require(!m.residual.after_norm, name,
            ": tokens cannot pass by the layers of a model that normalises behind them");
  f.require(m.attention.window == 0, name, ": it does not go with windows of attention");
  f.require(o.parallel.context() == 1, name,
            ": tokens cannot be dropped of sequences that are divided by "
            "--ds-sequence-parallel-size or --context-parallel-size; give "
            "--tensor-model-parallel-size with --sequence-parallel instead");
  if (wrong.empty()) {
    check_lengths(o, name, ltd.schedule, false, f);
  }
}

void check_layer_drop(const PretrainOptions& o, Findings& f) {
  const std::string name = "progressive_layer_drop";
  f.require(find_family(o.model.family).has_one_stack(), name,
            ": it is for decoders and BERT, not for ", o.model.family);
  f.require(!o.model.residual.after_norm, name,
            ": what goes into a layer cannot pass by it in a model that normalises behind layers");
}

}  // namespace

std::vector<std::string> curriculum_problems(const PretrainOptions& o) {
  Findings f;
  if (o.curriculum.enabled) {
    check_curriculum(o, f);
  }
  if (o.sampling.enabled()) {
    check_sampling(o, f);
  }
  if (o.random_ltd_enabled()) {
    check_random_ltd(o, f);
  }
  if (o.layer_drop.enabled) {
    check_layer_drop(o, f);
  }
  return f.found;
}

}  // namespace bloomery
