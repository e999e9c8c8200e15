// Rules across options. What a part can check itself (model, data, schedule, loss scale) is asked
// of that part.
#include <algorithm>

#include "base/findings.h"
#include "pipeline/schedule.h"
#include "train/plan/compression.h"
#include "train/plan/curriculum_problems.h"
#include "train/plan/plan.h"
#include "train/plan/read_pretrain.h"

namespace bloomery {
namespace {

bool has_questions(const PretrainOptions& o) {
  return o.task.enabled() && o.task.kind().answer == TaskAnswer::passage;
}

void check_network(const PretrainOptions& o, Findings& f) {
  const ModelOptions& m = o.model;
  f.require(m.num_layers > 0 && m.hidden_size > 0 && m.attention.num_heads > 0,
            "give --num-layers, --hidden-size and --num-attention-heads, or --model-size NAME");
  f.require(!m.positions.has_table() || m.positions.max_length == 0 ||
                m.positions.max_length >= o.data.seq_length,
            "--max-position-embeddings ", m.positions.max_length, " is less than ",
            has_questions(o) ? "--retriever-seq-length " : "--seq-length ", o.data.seq_length);
  f.require(o.task.enabled() || !m.task.any(),
            "--task-head is set by finetune --task NAME; a head needs a task to train");
  f.require(!m.residual.fp32 || o.precision.dtype != DType::fp32,
            "--fp32-residual-connection needs --bf16 or --fp16");
  f.require(o.recompute.granularity != RecomputeFlags::Granularity::selective ||
                o.recompute.method == RecomputeFlags::Method::none,
            "--recompute-method goes with --recompute-granularity full only");
  if (f.found.empty()) {
    f.add(problems(model_options(o, 1), layout(o).degrees));
  }
}

void check_teacher(const PretrainOptions& o, Findings& f) {
  if (!o.distillation.teacher) {
    return;
  }
  const ModelOptions& teacher = *o.distillation.teacher;
  f.require(o.parallel.pipeline == 1,
            "--kd, --mos: a teacher stands whole beside its student, "
            "which cannot be cut into pipeline stages then: divide both with "
            "--tensor-model-parallel-size, or --zero-stage 3");
  f.require(!teacher.positions.has_table() || teacher.positions.max_length == 0 ||
                teacher.positions.max_length >= o.data.seq_length,
            "--load-teacher: its table of positions ends at ", teacher.positions.max_length,
            ", before --seq-length ", o.data.seq_length);
}

void check_preference(const PretrainOptions& o, Findings& f) {
  if (!o.instruct.pairs) {
    return;
  }
  f.require(!sample_kind(o).of_sentences && find_family(o.model.family).decoder_begin == nullptr,
            "--dpo is for decoders, not for the family ", o.model.family);
  f.require(!o.instruct.packing, "--dpo: texts of pairs are not packed; leave out --packing");
  f.require(o.instruct.loss_on == LossOn::answers,
            "--dpo compares answers: leave out --loss-on all");
  f.require(!o.distillation.asked(), "--dpo and a teacher (--kd, --mos) exclude each other");
  f.require(!o.curriculum.enabled && !o.sampling.enabled() && !o.random_ltd_enabled(),
            "--dpo compares whole texts: leave out curricula and --random-ltd");
  f.require(o.precision.fp8.format == Fp8Flags::Format::none,
            "--dpo measures small differences of likelihoods, which 8 bits do not keep: leave out "
            "--fp8-format");
  const bool smooth =
      o.preference.loss == PreferenceLoss::sigmoid || o.preference.loss == PreferenceLoss::robust;
  f.require(smooth || o.preference.label_smoothing == 0,
            "--dpo-label-smoothing goes with --dpo-loss sigmoid and robust");
}

void check_fp8(const PretrainOptions& o, Findings& f) {
  if (o.precision.fp8.format == Fp8Flags::Format::none) {
    return;
  }
  f.require(!o.model.adapter.enabled,
            "--fp8-format: layers with adapters (--lora) are computed in 16 bits; leave it out");
  f.require(o.precision.dtype == DType::bf16, "--fp8-format goes with --bf16: add that flag");
  const std::int64_t tokens = o.batch.micro * o.data.seq_length / o.parallel.context();
  f.require(tokens % kFp8Multiple == 0, "--fp8-format: a micro-batch of ", tokens,
            " tokens cannot be multiplied in 8 bits; give a --micro-batch-size or --seq-length "
            "that makes it a multiple of ",
            kFp8Multiple);
}

void check_quantized_base(const PretrainOptions& o, Findings& f) {
  if (o.precision.quantized_base == QuantizedFormat::none) {
    return;
  }
  f.require(o.model.adapter.enabled, "--quantize-base ", o.precision.quantized_base,
            ": trained weights cannot be quantized: add --lora");
  f.require(o.parallel.zero_stage.value_or(0) < 3,
            "--quantize-base: --zero-stage 3 does not shard quantized weights: choose a lower "
            "stage, which shards all that is trained");
}

void check_reduction(const PretrainOptions& o, Findings& f) {
  f.require(o.parallel.replicas.reduce_dtype != DType::fp16 || o.precision.dtype == DType::fp16,
            "--grad-reduce-dtype fp16 (communication_data_type) would round small gradients to "
            "zero, which only the loss scale of --fp16 prevents: give bf16 or fp32");
  f.require(o.parallel.replicas.grad_dtype == DType::fp32 || o.precision.dtype == DType::bf16,
            "--grad-dtype bf16 (data_types.grad_accum_dtype) goes with --bf16: add that flag, or "
            "leave gradients in fp32");
}

void check_offload(const PretrainOptions& o, Findings& f) {
  const bool parameters = o.offload.parameters != OffloadFlags::Device::none;
  f.require(!parameters || o.parallel.zero_stage.value_or(0) == 3,
            "--remote-device (offload_param) needs --zero-stage 3: give both, or neither");
  const bool files = o.offload.parameters == OffloadFlags::Device::nvme ||
                     o.offload.optimizer == OffloadFlags::Device::nvme;
  f.require(!files || !o.offload.folder.empty(),
            "state in files needs a folder on a fast disk: --offload-folder (nvme_path)");
  f.require(!o.offload.activations || o.parallel.chunks.enabled ||
                recompute_options(o.recompute, o.model.num_layers).method !=
                    RecomputeOptions::Method::none,
            "--checkpoint-in-cpu (cpu_checkpointing) keeps the inputs of recomputed layers: add "
            "--checkpoint-activations or --recompute-granularity full");
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
              p.ring > 1 ? concat(" x context ", p.ring) : "", " x pipeline ", p.pipeline, " = ",
              model, " ranks hold a model together, and ", ranks,
              " cannot be divided into such groups: ",
              ways_to_start(ranks - below < above - ranks && below > 0 ? below : above));
  }
}

void check_sequence(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  if (p.ring == 1) {
    f.require(o.data.seq_length % p.sequence == 0, "--ds-sequence-parallel-size ", p.sequence,
              ": it must divide --seq-length ", o.data.seq_length);
  } else {
    f.require(o.data.seq_length % (2 * p.context()) == 0, "--context-parallel-size ", p.ring,
              p.sequence > 1 ? concat(" x --ds-sequence-parallel-size ", p.sequence) : "",
              ": twice that must divide --seq-length ", o.data.seq_length,
              ", of which each rank holds a piece of the first half and one of the second");
  }
  const std::int64_t tokens = o.batch.micro * o.data.seq_length / p.context();
  f.require(!o.parallel.sequence_parallel || tokens % o.parallel.tensor == 0,
            "--sequence-parallel: ", tokens, " tokens of a micro-batch cannot be divided among ",
            o.parallel.tensor, " tensor-parallel ranks");
}

void check_chunks(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  if (!p.chunks.enabled) {
    return;
  }
  constexpr const char* kFlag = "--ds-sequence-parallel-fpdt";
  f.require(p.chunks.length % p.sequence == 0, kFlag, "-chunk-size ", p.chunks.length,
            ": --ds-sequence-parallel-size ", p.sequence, " must divide it");
  f.require(find_family(o.model.family).is_decoder(), kFlag,
            ": the chunks of a sequence see those before them, in decoders such as gpt and "
            "llama; leave it out for --model-family ",
            o.model.family);
  f.require(p.ring == 1, kFlag,
            " divides sequences among ranks with --ds-sequence-parallel-size: "
            "give that instead of --context-parallel-size");
  f.require(!p.sequence_parallel || p.tensor == 1, kFlag,
            ": tensor-parallel ranks have all tokens of a chunk; leave out --sequence-parallel");
  f.require(!o.model.moe.any(), kFlag,
            ": experts take all tokens of a micro-batch at once; leave "
            "it out, or give --checkpoint-activations instead");
  f.require(!o.random_ltd_enabled(), kFlag,
            ": the tokens that --random-ltd keeps are not those of "
            "a chunk; leave out one of them");
  f.require(o.precision.fp8.format == Fp8Flags::Format::none, kFlag,
            ": scales of --fp8-format are those of whole micro-batches; leave out one of them");
}

// Of models with an encoder and a decoder, each with sequences and layers of its own.
void check_decoder(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  const std::int64_t length = o.sentences.decoder_seq_length;
  f.require(length > 0, "give --decoder-seq-length, such as 128");
  f.require(!o.model.positions.has_table() || o.model.positions.max_length == 0 ||
                o.model.positions.max_length >= length,
            "--max-position-embeddings ", o.model.positions.max_length,
            " is less than --decoder-seq-length ", length);
  f.require(!p.sequence_parallel || o.batch.micro * length % p.tensor == 0,
            "--sequence-parallel: ", o.batch.micro * length,
            " tokens of the decoder's micro-batch cannot be divided among ", p.tensor,
            " tensor-parallel ranks");
  f.require(!p.layers_per_chunk,
            "--num-layers-per-virtual-pipeline-stage: stages of an encoder and a decoder cannot be "
            "interleaved; leave it out");
  if (p.pipeline == 1) {
    return f.require(p.decoder_stage == 0,
                     "--pipeline-model-parallel-split-rank needs --pipeline-model-parallel-size");
  }
  const int encoder = Model::decoder_begin(o.model) - 2;
  const int decoder = Model::num_blocks(o.model) - 4 - encoder;
  const int split = decoder_stage(o.model, layout(o));
  f.require(0 < split && split < p.pipeline, "--pipeline-model-parallel-split-rank ", split,
            ": of ", p.pipeline, " stages it must be one from 1 to ", p.pipeline - 1);
  f.require(split <= encoder && p.pipeline - split <= decoder, "the ", encoder,
            " layers of the encoder are too few for ", split, " stages, or the ", decoder,
            " of the decoder for ", p.pipeline - split);
}

void check_pipeline(const PretrainOptions& o, Findings& f) {
  if (find_family(o.model.family).decoder_begin != nullptr) {
    return check_decoder(o, f);
  }
  const ParallelOptions& p = o.parallel;
  const std::int64_t layers = o.model.num_layers;
  f.require(p.pipeline <= layers || layers == 0, "--pipeline-model-parallel-size ", p.pipeline,
            ": a model of ", layers, " layers has at most ", layers, " stages");
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

void check_expert_ranks(const PretrainOptions& o, Findings& f) {
  const ParallelOptions& p = o.parallel;
  const int ranks = p.tensor * p.data_ranks();
  f.require(!o.model.moe.any() || ranks % p.expert == 0, "--moe-expert-parallel-size ", p.expert,
            " does not divide the ", ranks, " ranks of ", p.data_ranks(), " data-parallel x ",
            p.tensor, " tensor-parallel ones");
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

void check_task(const PretrainOptions& o, Findings& f) {
  const double epochs = o.instruct.epochs.value_or(0);
  f.require(o.model.family == task_family(o.task.kind()).name, "--task ", o.task.name,
            " is for models of ", "the family ", task_family(o.task.kind()).name, ", not ",
            o.model.family);
  f.require(epochs == std::floor(epochs) && epochs <= 1e6, "--epochs ", epochs,
            ": a task is trained on for whole epochs");
  f.require(epochs == 0 || !o.task.train_data.empty(),
            "--train-data is missing: the files to train on (--epochs 0 only evaluates)");
  f.require(!o.task.valid_data.empty(), "--valid-data is missing: the files to evaluate on");
  f.require(o.data.data_path.empty() && o.data.has_separate_paths() &&
                o.data.train_data_path.empty() && o.data.valid_data_path.empty(),
            "a task has no --data-path: give --train-data and --valid-data");
  f.require(o.batch.rampup.empty(), "--rampup-batch-size: a task has batches of one size");
  f.require(o.data.dataloader_type == LoaderType::single,
            "--dataloader-type: the order of a task's samples is its own; leave it out");
  f.require(!o.model.adapter.enabled,
            "--lora: the head of a task would not be trained; leave one of them out");
  f.require(!o.instruct.packing, "--packing is for records of instructions");
  f.require(!o.distillation.asked(), "--kd and --mos are not for tasks");
  f.require(!has_questions(o) || !o.task.keep_last ||
                global_batch_size(o) == o.batch.micro * o.parallel.data_ranks(),
            "--keep-last: questions of a batch that is incomplete must be those of one micro-batch "
            "of each rank; leave out --global-batch-size");
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
  check_chunks(o, f);
  check_pipeline(o, f);
  check_network(o, f);
  check_teacher(o, f);
  check_preference(o, f);
  check_fp8(o, f);
  check_quantized_base(o, f);
  check_reduction(o, f);
  check_offload(o, f);
  check_batch(o, f);
  check_expert_ranks(o, f);
  check_length(o, f);
  f.add(curriculum_problems(o));
  f.add(compression_problems(o));
  check_magnitudes(o, f);
  if (o.task.enabled()) {
    check_task(o, f);
  } else {
    f.add(problems(o.data));
  }
  f.require(!(o.rate.extend != Extend::no &&
              (o.rate.override_scheduler || o.rate.use_checkpoint_scheduler)),
            "--extend chooses the schedule; leave out the other options that choose it");
  f.require(o.rate.extend == Extend::no || !o.checkpoint.load.empty(),
            "--extend needs --load: the folder of the run to extend");
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
