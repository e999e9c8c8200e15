// Rules across options. What a part can check itself (model, data, schedule, loss scale) is asked
// of that part.
#include <algorithm>

#include "base/findings.h"
#include "pipeline/schedule.h"
#include "train/options/plan.h"
#include "train/options/read_pretrain.h"

namespace bloomery {
namespace {

void check_network(const PretrainOptions& o, Findings& f) {
  const ModelOptions& m = o.model;
  f.require(m.num_layers > 0 && m.hidden_size > 0 && m.attention.num_heads > 0,
            "give --num-layers, --hidden-size and --num-attention-heads, or --model-size NAME");
  f.require(!m.positions.has_table() || m.positions.max_length == 0 ||
                m.positions.max_length >= o.data.seq_length,
            "--max-position-embeddings ", m.positions.max_length, " is less than --seq-length ",
            o.data.seq_length);
  f.require(!m.residual.fp32 || o.precision.dtype != DType::fp32,
            "--fp32-residual-connection needs --bf16 or --fp16");
  f.require(!m.vocabulary.fp16_loss || o.precision.dtype == DType::fp16,
            "--fp16-lm-cross-entropy needs --fp16");
  f.require(o.recompute.granularity != RecomputeFlags::Granularity::selective ||
                o.recompute.method == RecomputeFlags::Method::none,
            "--recompute-method goes with --recompute-granularity full only");
  if (f.found.empty()) {
    f.add(problems(model_options(o, 1), layout(o).degrees));
  }
}

void check_fp8(const PretrainOptions& o, Findings& f) {
  if (o.precision.fp8.format == Fp8Flags::Format::none) {
    return;
  }
  f.require(o.precision.dtype == DType::bf16, "--fp8-format goes with --bf16: add that flag");
  const std::int64_t tokens = o.batch.micro * o.data.seq_length / o.parallel.sequence;
  f.require(tokens % kFp8Multiple == 0, "--fp8-format: a micro-batch of ", tokens,
            " tokens cannot be multiplied in 8 bits; give a --micro-batch-size or --seq-length "
            "that makes it a multiple of ",
            kFp8Multiple);
}

void check_reduction(const PretrainOptions& o, Findings& f) {
  f.require(o.parallel.replicas.reduce_dtype != DType::fp16 || o.precision.dtype == DType::fp16,
            "--grad-reduce-dtype fp16 (communication_data_type) would round small gradients to "
            "zero, which only the loss scale of --fp16 prevents: give bf16 or fp32");
}

std::string ways_to_start(std::int64_t ranks) {
  return concat("start ", ranks, " (mpirun -np ", ranks, ", bloomery launch -n ", ranks,
                " or --ranks-as-threads ", ranks, ")");
}

void check_ranks(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  const std::int64_t ranks = p.num_ranks(), model = p.model_ranks();
  f.require(p.processes == 1 || p.ranks_as_threads == 1, p.processes,
            " processes were started together: leave out --ranks-as-threads, each is one rank");
  if (ranks % model != 0) {
    const std::int64_t below = ranks / model * model, above = below + model;
    f.require(false, "tensor ", p.tensor, p.sequence > 1 ? concat(" x sequence ", p.sequence) : "",
              " x pipeline ", p.pipeline, " = ", model, " ranks hold a model together, and ", ranks,
              " cannot be divided into such groups: ",
              ways_to_start(ranks - below < above - ranks && below > 0 ? below : above));
  }
}

void check_sequence(const PretrainOptions& o, Findings& f) {
  const std::int64_t ranks = o.parallel.sequence;
  f.require(o.data.seq_length % ranks == 0, "--ds-sequence-parallel-size ", ranks,
            ": it must divide --seq-length ", o.data.seq_length);
  const std::int64_t tokens = o.batch.micro * o.data.seq_length / ranks;
  f.require(!o.parallel.sequence_parallel || tokens % o.parallel.tensor == 0,
            "--sequence-parallel: ", tokens, " tokens of a micro-batch cannot be divided among ",
            o.parallel.tensor, " tensor-parallel ranks");
}

void check_pipeline(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  const std::int64_t layers = o.model.num_layers;
  f.require(p.pipeline <= layers, "--pipeline-model-parallel-size ", p.pipeline, ": a model of ",
            layers, " layers has at most ", layers, " stages");
  if (!p.layers_per_chunk || p.pipeline > layers) {
    return;
  }
  const std::int64_t per_stage = layers / p.pipeline;
  f.require(layers % p.pipeline == 0 && per_stage % *p.layers_per_chunk == 0,
            "--num-layers-per-virtual-pipeline-stage ", *p.layers_per_chunk,
            ": it must divide the layers of a stage, ", layers, " / ", p.pipeline,
            layers % p.pipeline == 0 ? "" : ", which is no whole number");
  f.require(per_stage > *p.layers_per_chunk || p.pipeline == 1,
            "--num-layers-per-virtual-pipeline-stage ", *p.layers_per_chunk,
            " leaves one chunk per stage: give fewer layers, or leave it out");
}

// What the schedule asks of the numbers of micro-batches, which a ramp-up changes.
void check_schedule(const PretrainOptions& o, Findings& f) {
  const Layout all = layout(o);
  const BatchSize batch(global_batch_size(o), rampup(o.batch));
  for (const BatchSize::Stage& stage : batch.stages()) {
    const std::int64_t micro_batches = stage.batch / (o.batch.micro * all.degrees.data);
    const std::string why =
        problem(all.schedule, {all.degrees.pipeline, micro_batches, all.chunks});
    if (!why.empty()) {
      return f.require(false, "pipeline: ", why,
                       "; give another --global-batch-size or leave out "
                       "--num-layers-per-virtual-pipeline-stage");
    }
  }
}

void check_batch(const PretrainOptions& o, Findings& f) {
  const BatchOptions& b = o.batch;
  const std::int64_t global = global_batch_size(o), data_ranks = o.parallel.data_ranks();
  f.require(b.rampup.empty() || b.rampup.size() == 3,
            "--rampup-batch-size needs three numbers: start, increment and samples");
  if (b.micro < 1) {
    return;  // not given: the table says so
  }
  f.add(batch_problems(global, rampup(b), b.micro * data_ranks));
  f.require(!b.accumulation || *b.accumulation * b.micro * data_ranks == global,
            "gradient accumulation ", b.accumulation.value_or(1), " x micro-batch size ", b.micro,
            " x ", data_ranks, " data-parallel ranks is not the global batch size ", global);
}

void check_length(const PretrainOptions& o, Findings& f) {
  const LengthOptions& l = o.length;
  const RateOptions& r = o.rate;
  f.require(l.iterations || l.samples || l.tokens || o.evaluation.skip_train,
            "how long? give --train-iters, --train-samples or --train-tokens");
  f.require(!(l.iterations && l.samples), "--train-iters and --train-samples exclude each other");
  f.require(!l.iterations || o.batch.rampup.empty(),
            "--rampup-batch-size needs --train-samples or --train-tokens, not --train-iters");
  f.require(!l.iterations || (!r.decay_samples && r.warmup_samples == 0),
            "--train-iters goes with --lr-decay-iters and --lr-warmup-iters, not with samples");
  f.require(!l.samples || (!r.decay_iterations && r.warmup_iterations == 0),
            "--train-samples goes with --lr-decay-samples and --lr-warmup-samples, not with "
            "iterations");
  f.require(!(r.decay_tokens && (r.decay_samples || r.decay_iterations)),
            "--lr-decay-tokens and another length of the decay exclude each other");
  f.require(!r.warmup_tokens || (r.warmup_samples == 0 && r.warmup_iterations == 0),
            "--lr-warmup-tokens and another length of the warm-up exclude each other");
  f.require(r.rate || o.evaluation.skip_train, "--lr is required: the peak learning rate");
  f.require(!(r.override_scheduler && r.use_checkpoint_scheduler),
            "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler exclude each "
            "other");
}

// Counts of samples and tokens must be exact in a double, which also keeps products of them in
// range.
void check_magnitudes(const PretrainOptions& o, Findings& f) {
  constexpr double kMost = 9e15;
  const auto number = [](const std::optional<std::int64_t>& x) {
    return static_cast<double>(x.value_or(0));
  };
  const auto require_exact = [&](const char* what, double count) {
    f.require(count <= kMost, what, " would be ", count, ", and at most ", kMost,
              " can be counted");
  };
  const double batch = number(global_batch_size(o)), length = number(o.data.seq_length);
  if (batch < 1 || length < 1) {
    return;  // not given: the table says so
  }
  const double samples = std::max({number(o.length.iterations) * batch, number(o.length.samples),
                                   number(o.length.tokens) / length});
  require_exact("the tokens to train on", samples * length);
  require_exact(
      "the tokens of the learning rate's decay",
      std::max(number(o.rate.decay_iterations) * batch, number(o.rate.decay_samples)) * length);
  require_exact(
      "the tokens of the warm-up",
      std::max(number(o.rate.warmup_iterations) * batch, number(o.rate.warmup_samples)) * length);
  const auto growing = rampup(o.batch);
  const double smallest = growing && growing->start > 0 ? number(growing->start) : batch;
  const double evaluations = samples / smallest / number(o.evaluation.interval) + 1;
  require_exact("the samples of all evaluations",
                evaluations * number(o.evaluation.iterations) * batch);
}

}  // namespace

std::vector<std::string> problems(const PretrainOptions& o) {
  Findings f;
  check_ranks(o, f);
  check_sequence(o, f);
  check_pipeline(o, f);
  check_network(o, f);
  check_fp8(o, f);
  check_reduction(o, f);
  check_batch(o, f);
  check_length(o, f);
  check_magnitudes(o, f);
  f.add(problems(o.data));
  f.require(!(o.rate.extend != Extend::no &&
              (o.rate.override_scheduler || o.rate.use_checkpoint_scheduler)),
            "--extend says which schedule counts; leave out the options that do so as well");
  f.require(o.rate.extend == Extend::no || !o.checkpoint.load.empty(),
            "--extend needs --load: the folder of the run that goes on");
  f.require(!o.dry_run_json || o.dry_run, "--json is for --dry-run");
  f.require(o.checkpoint.keep_last != 1,
            "--keep-last 1 would delete the last good checkpoint while the next is new: keep 2");
  f.require(o.logging.profile_steps.size() == 2 &&
                o.logging.profile_steps.front() < o.logging.profile_steps.back(),
            "--profile_steps needs two steps, the first below the second");
  f.attempt([&] { check_loss_scale(loss_scale_options(o.precision)); });
  if (f.found.empty()) {
    check_schedule(o, f);
    f.attempt([&] { make_plan(o, 1); });  // the schedule checks itself
  }
  return f.found;
}

}  // namespace bloomery
