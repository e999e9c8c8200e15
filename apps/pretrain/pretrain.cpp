#include "apps/pretrain/pretrain.h"

#include <algorithm>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/common/processes.h"
#include "apps/evaluate/evaluate.h"
#include "apps/launch/launch.h"
#include "apps/pretrain/auto_micro_batch.h"
#include "apps/report/report.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "samples/datasets.h"
#include "train/finetune/tasks.h"
#include "train/plan/dry_run.h"
#include "train/plan/read_pretrain.h"
#include "train/report/report_html.h"
#include "train/run/pretrain.h"
#include "train/step/instructions.h"

namespace bloomery {
namespace {

// The run is done and saved: nothing that happens here is its failure.
void show_samples(const PretrainOptions& options, const DeviceChoice& device) {
  const std::string& folder = options.checkpoint.save;
  if (options.logging.report_samples.empty() || folder.empty()) {
    return;
  }
  try {
    add_samples(folder, {.prompts = options.logging.report_samples}, device);
    write_report(folder);
  } catch (const std::exception& error) {
    Log().warning("--report-samples: ", error.what(),
                  "; the run itself is complete. Try again: ", "bloomery report ", folder,
                  " --samples PROMPT");
  }
}

RunEnd train(const PretrainOptions& options, const OptionTable& table,
             const std::vector<std::string>& notes, PretrainSetting setting) {
  const StopSignals signals(
      "saves a checkpoint after this step, then exits (--load continues from it)");
  return pretrain(options, table, notes, std::move(setting));
}

int exit_code(RunEnd end) {
  return end == RunEnd::finished ? kFinished : end == RunEnd::stopped ? kStoppedEarly : kFailed;
}

// What the arguments say.
struct Request {
  std::string command;  // pretrain or finetune
  PretrainOptions options;
  DeviceChoice device;
  OptionTable table;
  std::vector<std::string> notes;

  bool auto_micro_batch = false;
  std::shared_ptr<const InstructData> instructions;  // of finetune
  std::shared_ptr<const TaskData> task;              // of finetune --task

  Request(std::string name, PretrainOptions defaults)
      : command(std::move(name)), options(std::move(defaults)) {
    describe(table, options);
    describe(table, device);
    table.take_config_files();
  }
  void read(const Arguments& arguments, int processes) {
    Arguments words = arguments;
    auto_micro_batch = take_auto_micro_batch(words);
    notes = read_pretrain(table, options, words, read_environment(processes));
    if (const std::string problem = missing_load(options.checkpoint);
        !problem.empty() && !options.dry_run) {
      throw Error(problem);
    }
    if (!options.dry_run && !options.instruct.enabled && !options.task.enabled()) {
      require_corpora(options.data);
    }
    if (options.parallel.transport == Transport::nccl && device.options().kind == DeviceKind::cpu) {
      options.parallel.transport = Transport::automatic;  // scripts for GPUs run on a CPU too
      notes.push_back("--distributed-backend nccl is ignored: tensors are not on a GPU here");
    }
  }
  // What depends on the memory that ranks have, and on files; `room` is asked for at need.
  template <class FindRoom>
  void prepare(const FindRoom& room) {
    if (auto_micro_batch) {
      notes.push_back(choose_micro_batch(options, room()));
    }
    if (options.instruct.enabled) {
      instructions = read_instructions(table, options, notes);
    }
    if (options.task.enabled()) {
      task = read_task(options, notes);
    }
    if ((instructions || task) && !table.given("log-interval")) {
      options.logging.interval = tuning_log_interval(options);
    }
  }
};

Arguments typed(const Request& request, const Arguments& arguments) {
  Arguments command = {"bloomery", request.command};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int run_alone(Request& request, const Arguments& arguments, std::ostream& out) {
  request.read(arguments, 1);
  const PretrainOptions& options = request.options;
  request.prepare([&] {
    return room_for(request.device.options(), options.offload, options.parallel.ranks_as_threads);
  });
  if (request.options.dry_run) {
    print_dry_run(request.table, request.options, request.notes, request.device.options().kind,
                  out);
    return kFinished;
  }
  const RunEnd end = train(request.options, request.table, request.notes,
                           {.world = nullptr,
                            .device = request.device.options(),
                            .instructions = request.instructions,
                            .task = request.task,
                            .stop_requested = StopSignals::came,
                            .out = out,
                            .command = typed(request, arguments)});
  if (end == RunEnd::finished) {
    show_samples(request.options, request.device);
  }
  return exit_code(end);
}

// Processes of this machine that compute on one device.
int ranks_of_device(const DeviceOptions& device, bool gpu_given, const StartFacts& facts) {
  const int devices =
      device.kind == DeviceKind::cuda && !gpu_given ? std::max(1, num_cuda_devices()) : 1;
  return (facts.local_size + devices - 1) / devices;
}

// As rank `facts.rank` of several processes.
int run_as_rank(Request& request, const Arguments& arguments, std::ostream& out,
                const StartFacts& facts, RankProcess& process) {
  const JoinedWorld& joined = process.joined;
  const auto agree = [&](const auto& step) {
    std::string problem;
    try {
      step();
    } catch (const Error& error) {
      problem = error.what();
    }
    const std::string all = concat(request.table.json(), request.auto_micro_batch);
    return agree_on_options(*joined.host, problem, all);
  };
  if (!agree([&] { request.read(arguments, facts.size); })) {
    return kBadInput;
  }
  const bool first = facts.rank == 0, gpu_given = request.table.given("gpu");
  const PretrainOptions& options = request.options;
  const DeviceOptions device = rank_device(request.device, gpu_given, facts, *joined.host);
  Room room;
  if (request.auto_micro_batch) {
    room = smallest_room(
        *joined.host, room_for(device, options.offload, ranks_of_device(device, gpu_given, facts)));
  }
  if (!agree([&] { request.prepare([&] { return room; }); })) {
    return kBadInput;
  }
  if (options.dry_run) {
    if (first) {
      print_dry_run(request.table, options, request.notes, request.device.options().kind, out);
    }
    return kFinished;
  }
  Log().info("this is ", facts.line());
  const ParallelOptions& parallel = options.parallel;
  process.report_folder = report_folder(options);
  const RunEnd end = train(options, request.table, request.notes,
                           {.world = process.watch.record(
                                make_world(joined, parallel.transport, device, parallel.timeout())),
                            .device = device,
                            .instructions = request.instructions,
                            .task = request.task,
                            .stop_requested = StopSignals::came,
                            .out = out,
                            .command = typed(request, arguments)});
  if (first && end == RunEnd::finished) {
    show_samples(options, request.device);
  }
  return exit_code(end);
}

// `name`: the command as it was called.
int train_command(Request& request, const Arguments& arguments, std::ostream& out,
                  const std::string& name, const std::string& purpose) {
  const StartFacts facts = start_facts(environment_variables());
  std::ostringstream null_stream;
  if (print_help(request.table, arguments, facts.rank == 0 ? out : null_stream,
                 concat("usage: bloomery ", name, " [OPTIONS]\n\n", purpose, "\n"))) {
    return kFinished;
  }
  if (facts.size == 1) {
    return run_alone(request, arguments, out);
  }
  if (divides_pod(facts)) {
    Arguments words = {"--", request.command};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return launch_command(words, out);
  }
  return run_joined(facts, [&](RankProcess& process) {
    return run_as_rank(request, arguments, out, facts, process);
  });
}

// `example`: the flags of one.
int pretrain_as(const std::string& name, const char* example, const Arguments& arguments,
                std::ostream& out) {
  Request request("pretrain", pretrain_defaults(arguments));
  return train_command(request, arguments, out, name,
                       concat("Trains a model. docs/options.md lists every option of "
                              "Megatron-DeepSpeed.\n\nexample:\n  bloomery ",
                              name, " ", example));
}

// Megatron's program for a family.
int pretrain_family(const std::string& family, const char* example, const Arguments& arguments,
                    std::ostream& out) {
  Arguments all = {"--model-family", family};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return pretrain_as("pretrain_" + family, example, all, out);
}

}  // namespace

int finetune_llama_command(const Arguments& arguments, std::ostream& out) {
  PretrainOptions options = pretrain_defaults(arguments);
  options.instruct.enabled = true;
  options.instruct.prompt_template = "alpaca";
  Request request("finetune_llama", std::move(options));
  return train_command(request, arguments, out, "finetune_llama",
                       "Fine-tunes the model of --load on a file of Alpaca records (--data-path), "
                       "with the flags of Megatron-DeepSpeed.\n\nexample:\n  bloomery "
                       "finetune_llama --load llama --data-path alpaca_data.json "
                       "--micro-batch-size 4 --seq-length 1024 --lr 2e-5 --save run/tuned");
}

// Megatron's tasks/main.py: what it trains is a run of finetune, what it only looks at is for
// evaluate.
int tasks_main_command(const Arguments& arguments, std::ostream& out) {
  const std::string task = named_task(arguments);
  const std::vector<std::string> trained = task_names();
  check(!task.empty() || wants_help(arguments),
        "--task is required: MNLI, RACE, WIKITEXT103, ...; see `bloomery help tasks_main`");
  if (!task.empty() && std::ranges::find(trained, task) == trained.end()) {
    return evaluate(arguments, out);
  }
  PretrainOptions options = task_defaults(arguments);
  options.instruct.enabled = task.empty();  // help shows the same options
  Request request("tasks_main", std::move(options));
  return train_command(
      request, arguments, out, "tasks_main",
      "Fine-tunes BERT or a retriever for a task (--task, --train-data, --valid-data, "
      "--pretrained-checkpoint, --epochs), or evaluates a model, with the flags of Megatron's "
      "tasks/main.py.\n\nexample:\n  bloomery tasks_main --task MNLI --train-data train.tsv "
      "--valid-data dev.tsv --pretrained-checkpoint run/bert --epochs 3 --micro-batch-size 32 "
      "--seq-length 128 --lr 2e-5");
}

int pretrain_bert_command(const Arguments& arguments, std::ostream& out) {
  return pretrain_family(
      "bert",
      "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
      "--micro-batch-size 4 --train-iters 10000 --lr 1e-4 --data-path run/my_text_sentence "
      "--vocab-file bert-vocab.txt --save run/bert",
      arguments, out);
}

int pretrain_t5_command(const Arguments& arguments, std::ostream& out) {
  return pretrain_family(
      "t5",
      "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 512 "
      "--decoder-seq-length 128 --micro-batch-size 4 --train-iters 10000 --lr 1e-4 --data-path "
      "run/my_text_sentence --vocab-file bert-vocab.txt --vocab-extra-ids 100 --save run/t5",
      arguments, out);
}

int pretrain_ict_command(const Arguments& arguments, std::ostream& out) {
  return pretrain_family(
      "ict",
      "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 256 "
      "--micro-batch-size 32 --train-iters 10000 --lr 1e-4 --data-path run/my_text_sentence "
      "--titles-data-path run/my_title_document --bert-load run/bert --save run/ict",
      arguments, out);
}

int pretrain_command(const Arguments& arguments, std::ostream& out) {
  return pretrain_as(
      "pretrain",
      "--model-size 124M --seq-length 1024 --micro-batch-size 8 --train-iters 10000 --lr 6e-4 "
      "--data-path run/my_text_document --tokenizer run/tokenizer --save run/gpt",
      arguments, out);
}

int finetune_command(const Arguments& arguments, std::ostream& out) {
  Request request("finetune", finetune_defaults(arguments));
  return train_command(
      request, arguments, out, "finetune",
      "Fine-tunes the model of --load on instruction data (--data-path FILES), or BERT or a "
      "retriever for a task (--task NAME --train-data FILES --valid-data FILES). All options of "
      "pretrain apply.\n\nexample:\n  bloomery finetune --load run/gpt --data-path records.jsonl "
      "--save run/tuned");
}

}  // namespace bloomery
