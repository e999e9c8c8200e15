#include "train/run/pretrain.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <future>
#include <iterator>

#include "base/hash.h"
#include "base/log.h"
#include "base/terminal.h"
#include "build_config.h"
#include "checkpoint/folder.h"
#include "checkpoint/hf/hf_origin.h"
#include "checkpoint/stored_model.h"
#include "comm/nccl/nccl.h"
#include "comm/threads.h"
#include "comm/watch/recorded.h"
#include "device/out_of_memory.h"
#include "ops/attention/cudnn_library.h"
#include "ops/matmul/cublaslt_library.h"
#include "samples/datasets.h"
#include "samples/instruct/instruct_data.h"
#include "samples/tasks/task_data.h"
#include "train/plan/what_fits.h"
#include "train/run/run_command.h"
#include "train/step/choose_schedule.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;

std::string torch_type(DType dtype) {
  return dtype == DType::bf16   ? "torch.bfloat16"
         : dtype == DType::fp16 ? "torch.float16"
                                : "torch.float32";
}

// What differs from the defaults; with -v all options.
void print_arguments(RunLog& log, const PretrainOptions& options, const OptionTable& table) {
  const ArgumentList all = argument_list(table), changed = changed_arguments(table);
  if (least_logged() <= LogLevel::debug) {
    log.line(arguments_table(all));
    return;
  }
  log.line(arguments_table(changed));
  const std::string& folder = options.checkpoint.save;
  log.note(concat(all.size() - changed.size(), " options keep their defaults: -v prints them",
                  folder.empty() ? "" : concat(", ", folder, "/", kArgumentsFile, " has them")));
}

// The lines before anything is built.
void print_options(RunLog& log, const PretrainOptions& options, const OptionTable& table,
                   const std::vector<std::string>& notes) {
  const ParallelOptions& p = options.parallel;
  log.line(world_size_line({.world = p.num_ranks(),
                            .data = p.data_ranks(),
                            .sequence = p.context(),
                            .tensor = p.tensor,
                            .pipeline = p.pipeline}));
  log.line(parameter_type_line(torch_type(options.precision.dtype)));
  print_arguments(log, options, table);
  for (const std::string& note : notes) {
    log.note(note);
  }
}

void print_plan(RunLog& log, const PretrainOptions& options, const Plan& plan,
                const std::string& tokenizer, Clock::time_point start) {
  if (const auto growing = rampup(options.batch)) {
    log.line(
        rampup_line(growing->start, plan.batch.global(), growing->increment, growing->samples));
  } else {
    log.line(micro_batches_line(plan.num_micro_batches(0)));
  }
  log.line(building_tokenizer_line(tokenizer));
  log.line(padded_vocabulary_line(plan.rank.model.vocabulary.size, plan.padded_vocabulary));
  log.line(model_parallel_lines(options.parallel.tensor, options.parallel.pipeline));
  log.line(random_seed_line(options.seed));
  log.line(initialize_time_line(std::chrono::duration<double>(Clock::now() - start).count()));
  log.line(datetime_line("after megatron is initialized", std::time(nullptr)));
}

// A folder that TensorBoard's events can go to, made before anything that takes time.
void make_event_folder(const LoggingOptions& logging) {
  std::error_code failed;
  if (!logging.tensorboard_dir.empty()) {
    std::filesystem::create_directories(logging.tensorboard_dir, failed);
  }
  check(!failed, "--tensorboard-dir: cannot create the folder ", logging.tensorboard_dir, ": ",
        failed.message());
}

// The checkpoint to start from, by its manifest; none: from random values. The ranks check what
// they read of it, and come again when that was `damaged`.
std::optional<CheckpointReader> choose_checkpoint(const CheckpointFlags& flags,
                                                  const Folders& damaged) {
  std::optional<CheckpointReader> reader =
      find_newest(flags.load, nullptr, Log(), open_input_file, damaged);
  if (!reader) {
    check(!flags.exit_on_missing, "there is no checkpoint in ", flags.load,
          ", and --exit-on-missing-checkpoint asks to stop then");
  }
  return reader;
}

// The first rank chooses it; the others open the same.
std::optional<CheckpointReader> open_checkpoint(const CheckpointFlags& flags, HostGroup& host,
                                                const Folders& damaged) {
  if (flags.load.empty()) {
    return std::nullopt;
  }
  std::optional<CheckpointReader> reader;
  if (host.rank() == 0) {
    reader = choose_checkpoint(flags, damaged);
  }
  const std::string folder = reader ? std::filesystem::absolute(reader->folder()).string() : "";
  const std::string chosen = host.broadcast("checkpoint", folder, 0);
  if (host.rank() != 0 && !chosen.empty()) {
    reader.emplace(open_as_others(chosen));
  }
  return reader;
}

struct SaveFolder {
  std::string path;
  std::int64_t own_step = kNoStep;  // that this run goes on from
  bool moves_later = false;         // aside, before the first save

  void make_room() const {
    if (moves_later) {
      set_later_steps_aside(path, own_step, Log());
    }
  }
};

// --save is for one line of steps: a run starts one in a folder without checkpoints, or goes on
// from the newest there. Newer ones that were passed over as damaged, or that --fork speaks of,
// move aside, once the run is known to start.
SaveFolder claim_save_folder(const PretrainOptions& options,
                             const std::optional<CheckpointReader>& checkpoint) {
  const CheckpointFlags& flags = options.checkpoint;
  if (flags.save.empty() || options.evaluation.skip_train) {
    return {};
  }
  const bool goes_on = checkpoint && !flags.finetune && !flags.reset_iteration;
  const std::int64_t own = own_step(flags.save, goes_on ? &*checkpoint : nullptr);
  std::error_code absent;
  const bool newest = own != kNoStep && flags.load_tag.empty() &&
                      std::filesystem::equivalent(flags.load, flags.save, absent);
  const bool moves = newest || flags.fork;
  if (!moves) {
    refuse_later_steps(flags.save, own);
  }
  return {flags.save, own, moves};
}

// What the first samples hold: the same as long as their order is, however many are asked for.
std::string sample_order(const Dataset& samples) {
  constexpr std::int64_t kSamples = 16;
  HostBatch sample(DeviceKind::cpu, samples.fields(), 1);
  std::string bytes;
  for (std::int64_t k = 0; k < std::min(kSamples, samples.size()); ++k) {
    samples.read(k, Sample(sample, 0));
    for (const SampleField& field : samples.fields()) {
      const std::span<const std::byte> array = sample.bytes(field);
      bytes.append(reinterpret_cast<const char*>(array.data()), array.size());
    }
  }
  return hash_text(xxh3(bytes));
}

constexpr const char* kOrder = "training order";

std::map<std::string, std::string> data_indices(const TrainingData& data) {
  std::map<std::string, std::string> indices = data.index_hashes();
  if (const Dataset* samples = data.source(Split::train)) {
    indices[kOrder] = sample_order(*samples);
  }
  return indices;
}

void note_other_data(const std::map<std::string, std::string>& here,
                     const std::optional<CheckpointReader>& checkpoint, RunLog& log) {
  if (!checkpoint || checkpoint->state().data_indices.empty()) {
    return;
  }
  const auto& stored = checkpoint->state().data_indices;
  const char* key = stored.contains(kOrder) ? kOrder : "training";
  const auto before = stored.find(key), after = here.find(key);
  if (before != stored.end() && after != here.end() && before->second != after->second) {
    log.warning(
        "the training samples differ from the checkpoint's (other corpora, --split, --seed, "
        "--seq-length or number of samples): the run continues in the new order");
  }
}

// By Split. Validation goes on where the checkpoint's run was, even behind the length that the
// flags ask for.
std::array<std::int64_t, 3> requested_samples(const PretrainOptions& options, const Plan& plan,
                                              const std::optional<CheckpointReader>& checkpoint) {
  auto [train, valid, test] = plan.requested_samples;
  if (checkpoint && !options.checkpoint.finetune) {
    const std::int64_t evaluations = checkpoint->state().step / options.evaluation.interval + 1;
    valid = std::max(valid, evaluations * test);  // of the test samples there is one evaluation
  }
  return {train, valid, test};
}

DeviceOptions rank_device(DeviceOptions device, std::int64_t ranks) {
  if (device.num_threads == 0 && ranks > 1) {
    device.num_threads = std::max(1, usable_cores() / static_cast<int>(ranks));
  }
  return device;
}

// A rank that does not come ends the run, and one that does not even end then, the process.
ThreadOptions thread_options(const PretrainOptions& options) {
  return {.timeout_seconds = options.parallel.timeout(),
          .when_silent =
              [&options](const std::string& failure, const WatchReport& report) {
                Log().error(failure, '\n', report.summary,
                            store_report(failure, report, report_folder(options)));
              },
          .when_stuck =
              [](const std::string& failure) {
                Log().error("some ranks do not exit after this failure: ", failure);
                std::_Exit(1);
              }};
}

// Ranks are processes or threads; only the first has a log that says something.
RunEnd run_trainers(const RunInputs& inputs, const OptionTable& table, RunLog& log,
                    std::unique_ptr<Communicator>& processes) {
  const int ranks = inputs.options.parallel.ranks_as_threads;
  RunEnd end = RunEnd::finished;
  const auto run_rank = [&](int rank, std::unique_ptr<Communicator> world) {
    RunInputs mine = inputs;
    if (inputs.options.parallel.transport == Transport::nccl && ranks > 1) {
      mine.device.index = (mine.device.index + rank) % std::max(1, num_cuda_devices());
      FlightRecorder& recorder = *recorder_of(*world);
      world = record_calls(over_nccl(std::move(world), mine.device), recorder);
    }
    RunLog silent(nullptr, inputs.options, table);
    Trainer trainer(mine, std::move(world), rank == 0 ? log : silent);
    const RunEnd how = trainer.run();
    if (rank == 0) {
      end = how;
    }
  };
  if (processes->size() > 1) {
    // A checkpoint that cannot be read brings the processes back to the choice of one.
    std::unique_ptr<Communicator> world = inputs.checkpoint != nullptr
                                              ? processes->split(0, processes->rank())
                                              : std::move(processes);
    return Trainer(inputs, std::move(world), log).run();
  }
  if (ranks == 1) {
    run_rank(0, make_self_communicator());
  } else {
    run_ranks(ranks, run_rank, thread_options(inputs.options));
  }
  return end;
}

// What does not depend on a checkpoint.
struct Basis {
  const PretrainOptions& options;
  const OptionTable& table;
  const PretrainSetting& setting;
  const Tokenizer& tokenizer;
  const Plan& plan;
  Clock::time_point start;
};

// Of the model that the run goes on or starts from.
std::string run_origin(const Basis& basis, const std::optional<CheckpointReader>& checkpoint) {
  const CheckpointFlags& flags = basis.options.checkpoint;
  const bool foreign = !flags.load.empty() && is_hf_folder(flags.load);
  const std::string& start = foreign ? flags.load : flags.start;
  const std::string origin = checkpoint      ? hf_origin(checkpoint->state())
                             : start.empty() ? ""
                                             : hf_origin(start);
  const auto& task = basis.setting.task;
  return task ? tuned_origin(origin, task->kind().labels) : origin;
}

// All but the data's and the schedule.
RunFacts run_facts(const Basis& basis, const std::optional<CheckpointReader>& checkpoint) {
  const PretrainOptions& options = basis.options;
  const auto& instructions = basis.setting.instructions;
  RunFacts facts;
  facts.model = {.model = basis.plan.rank.model,
                 .tokenizer = options.tokenizer,
                 .dtype = basis.plan.rank.dtype};
  facts.options = basis.table.json();
  facts.tokenizer_files = read_tokenizer_files(
      options.tokenizer, instructions ? instructions->new_chat_template() : "");
  facts.hf_origin = run_origin(basis, checkpoint);
  if (checkpoint && !options.checkpoint.finetune) {
    require_same_tokenizer(*checkpoint, *facts.tokenizer_files);
  }
  return facts;
}

// The samples of `finetune`, by Split.
std::array<std::unique_ptr<Dataset>, 3> tuning_sources(
    const PretrainSetting& setting, const std::array<std::int64_t, 3>& requested) {
  std::array<std::unique_ptr<Dataset>, 3> sources;
  if (setting.task) {
    sources[0] = setting.task->epochs() > 0 ? setting.task->training() : nullptr;
    sources[1] = requested[1] > 0 ? setting.task->validation(requested[1]) : nullptr;
    return sources;
  }
  for (const Split split : kSplits) {
    const auto i = static_cast<std::size_t>(split);
    sources[i] = requested[i] > 0 ? setting.instructions->build(split, requested[i]) : nullptr;
  }
  return sources;
}

std::unique_ptr<const TrainingData> make_data(const Basis& basis,
                                              const std::optional<CheckpointReader>& checkpoint,
                                              bool first, RunLog& log) {
  const auto requested = requested_samples(basis.options, basis.plan, checkpoint);
  log.line(building_datasets_line());
  log.line(dataset_sizes_lines(requested[0], requested[1], requested[2]));
  if (basis.setting.instructions || basis.setting.task) {
    return std::make_unique<const TrainingData>(basis.options.data,
                                                tuning_sources(basis.setting, requested),
                                                basis.setting.instructions.get());
  }
  auto data = std::make_unique<TrainingData>(
      sample_kind(basis.options), sample_options(basis.options), requested, basis.tokenizer, Log());
  if (basis.plan.curriculum) {
    CurriculumOptions curriculum = *basis.plan.curriculum;
    if (!first) {
      curriculum.cluster_path.clear();  // the first process writes
    }
    data->choose_by(curriculum, basis.plan.batch.global());
  }
  return data;
}

// From the newest checkpoint that is not damaged, if there is one. `chosen` says which.
RunEnd run_from_checkpoint(const Basis& basis, std::unique_ptr<Communicator>& world, RunLog& log,
                           const Folders& damaged, std::filesystem::path& chosen) {
  const PretrainOptions& options = basis.options;
  const Plan& plan = basis.plan;
  HostGroup& host = world->host();
  const bool first = host.rank() == 0;
  const std::string& load = options.checkpoint.load;
  const bool foreign = !load.empty() && is_hf_folder(load);
  const std::optional<CheckpointReader> checkpoint =
      foreign ? std::nullopt : open_checkpoint(options.checkpoint, host, damaged);
  chosen = checkpoint ? checkpoint->folder() : std::filesystem::path();
  const SaveFolder save = first ? claim_save_folder(options, checkpoint) : SaveFolder{};
  RunFacts facts = run_facts(basis, checkpoint);
  facts.own_step = std::stoll(host.broadcast("claim", std::to_string(save.own_step), 0));
  const ScheduleChoice choice = choose_schedule(options, plan, checkpoint ? &*checkpoint : nullptr);
  for (const std::string& note : choice.notes) {
    log.note(note);
  }
  facts.schedule = choice.schedule;
  std::unique_ptr<const TrainingData> data;
  const auto get_data = [&](RunLog& to) -> const TrainingData& {
    if (!data) {
      data = make_data(basis, checkpoint, first, to);
      facts.data_indices = data_indices(*data);
      if (!options.checkpoint.finetune) {
        note_other_data(facts.data_indices, checkpoint, to);
      }
    }
    return *data;
  };
  const RunInputs inputs{
      .options = options,
      .plan = plan,
      .facts = facts,
      .device = rank_device(basis.setting.device, options.parallel.ranks_as_threads),
      .checkpoint = checkpoint ? &*checkpoint : nullptr,
      .foreign_model = foreign ? load : "",
      .schedule_refusal = choice.refusal,
      .make_room = [&] { save.make_room(); },
      .keep_command = [&] { store_command(save.path, basis.table, basis.setting.command, Log()); },
      .data = get_data,
      .task = basis.setting.task.get(),
      .stop_requested = basis.setting.stop_requested,
      .start = basis.start};
  return run_trainers(inputs, basis.table, log, world);
}

// Says what the run will take, and ends it where that is more than there is.
void require_room(const PretrainOptions& options, const Plan& plan, const Room& room,
                  std::int64_t vocabulary, RunLog& log) {
  const PlannedMemory memory = plan_memory(plan, sample_fields(options), room.kind);
  const std::string summary = memory_summary(memory, room);
  log.own_line(summary);
  check(room.holds(memory), "the run does not fit:", summary, "; ",
        advice(options, vocabulary, room));
}

void require_tokenizer_of_corpora(const PretrainOptions& options, const Tokenizer& tokenizer) {
  if (options.instruct.enabled || options.task.enabled()) {
    return;  // data of texts
  }
  std::vector<std::string> prefixes = corpora(options.data);
  std::ranges::copy(options.sentences.blocks.titles, std::back_inserter(prefixes));
  require_tokenizer(options.data, prefixes, tokenizer, options.tokenizer);
}

// Starts the driver of a GPU and opens its libraries, which takes a while, on threads beside the
// caller. Whoever uses them says what is wrong with them.
std::vector<std::future<void>> start_gpu(const DeviceOptions& device) {
  std::vector<std::future<void>> started;
  if constexpr (build::cuda) {
    if (device.kind == DeviceKind::cuda) {
      started.push_back(std::async(std::launch::async, [device] {
        try {
          use_device(device);
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
        }
      }));
      started.push_back(std::async(std::launch::async, [] {
        attention_cuda::open_cudnn_ahead();
        open_cublaslt_ahead();
      }));
    }
  }
  return started;
}

}  // namespace

std::filesystem::path report_folder(const PretrainOptions& options) {
  return options.checkpoint.save.empty() ? options.logging.tensorboard_dir
                                         : options.checkpoint.save;
}

RunEnd pretrain(const PretrainOptions& options, const OptionTable& table,
                const std::vector<std::string>& notes, PretrainSetting setting) {
  const Clock::time_point start = Clock::now();
  std::unique_ptr<Communicator> world =
      setting.world ? std::move(setting.world) : make_self_communicator();
  const bool first = world->rank() == 0;
  const std::vector<std::future<void>> started = start_gpu(setting.device);
  RunLog log(first ? &setting.out : nullptr, options, table);
  print_options(log, options, table, notes);
  if (first) {
    make_event_folder(options.logging);
  }
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  require_tokenizer_of_corpora(options, *tokenizer);
  const Plan plan = make_plan(options, tokenizer->vocab_size());
  print_plan(log, options, plan,
             options.tokenizer.type.empty() ? "Bloomery" : options.tokenizer.type, start);
  const Room room = room_for(setting.device, options.offload, options.parallel.ranks_as_threads);
  if (!options.evaluation.skip_train) {
    require_room(options, plan, room, tokenizer->vocab_size(), log);
  }
  const Basis basis{options, table, setting, *tokenizer, plan, start};
  for (Folders damaged;;) {
    std::filesystem::path chosen;
    try {
      return run_from_checkpoint(basis, world, log, damaged, chosen);
    } catch (const DamagedCheckpoint& found) {
      Log().warning("Skipping unreadable checkpoint: ", found.what());
      damaged.insert(chosen);
    } catch (const OutOfMemory& found) {
      throw Error(concat(found.what(), "; ", advice(options, tokenizer->vocab_size(), room)));
    }
  }
}

}  // namespace bloomery
