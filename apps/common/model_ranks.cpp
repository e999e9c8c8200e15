#include "apps/common/model_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "comm/nccl/nccl.h"
#include "comm/threads.h"
#include "comm/transport.h"
#include "comm/watch/recorded.h"
#include "generate/decoder_call.h"

namespace bloomery {
namespace {

const Log kQuiet(0, 1, LogLevel::error);

// A rank that does not end after another one failed cannot be ended from outside.
ThreadOptions thread_options() {
  return {.when_stuck = [](const std::string& failure) {
    Log().error("some ranks do not exit after this failure: ", failure);
    std::_Exit(1);
  }};
}

// Each rank has a GPU of its own where there are enough of them, else all share one; of the cores
// each has its part.
DeviceOptions thread_device(DeviceOptions device, int rank, int ranks, bool own_gpu) {
  if (own_gpu) {
    device.index = (device.index + rank) % num_cuda_devices();
  }
  if (device.num_threads == 0) {
    device.num_threads = std::max(1, usable_cores() / ranks);
  }
  return device;
}

}  // namespace

void describe(OptionTable& t, RankChoice& o) {
  t.section("ranks");
  t.add("tensor-model-parallel-size", o.tensor,
        "Number of tensor-parallel ranks: the processes of bloomery launch or mpirun, otherwise "
        "threads of this process, each on its own GPU where there are enough.",
        between(1, 1024));
  t.add("ranks-as-threads", o.threads,
        o.data_parallel ? "Number of ranks as threads of this process. Those beyond one model of "
                          "tensor-parallel ranks are data-parallel."
                        : "Must equal --tensor-model-parallel-size; for scripts.",
        between(1, 1024));
}

std::vector<std::string> contradictions(const RankChoice& o) {
  if (!o.threads || *o.threads == o.tensor) {
    return {};
  }
  if (o.data_parallel) {
    return *o.threads % o.tensor == 0 ? std::vector<std::string>()
                                      : std::vector{concat("--ranks-as-threads ", *o.threads,
                                                           " cannot be divided into groups of "
                                                           "--tensor-model-parallel-size ",
                                                           o.tensor)};
  }
  return {concat("--ranks-as-threads ", *o.threads, " with --tensor-model-parallel-size ", o.tensor,
                 ": all ranks are tensor-parallel, so give --tensor-model-parallel-size ",
                 *o.threads)};
}

int ModelRanks::with_first(const ModelStart& start,
                           const std::function<int(LoadedModel&)>& body) const {
  return with_all(start, [&](LoadedModel& model, bool first) {
    require_text_model(model);
    if (!first) {
      follow_decoders(model.model(), model.stream(), model.mesh());
      return 0;
    }
    const int code = body(model);
    dismiss_followers(model.mesh());
    return code;
  });
}

int ModelRanks::with_all(const ModelStart& start,
                         const std::function<int(LoadedModel&, bool first)>& body) const {
  const auto count = static_cast<int>(
      start.ranks.data_parallel && start.ranks.threads ? *start.ranks.threads : start.ranks.tensor);
  const auto checked = [&](LoadedModel& model, bool first) {
    start.model.require_sizes(model);
    return body(model, first);
  };
  if (process_ != nullptr) {
    return run_process(start, checked);
  }
  LoadOptions options = start.model.options();
  options.tensor = static_cast<int>(start.ranks.tensor);
  if (count > 1) {
    return run_threads(options, count, checked);
  }
  LoadedModel model(options);
  return checked(model, true);
}

int ModelRanks::run_threads(const LoadOptions& options, int ranks,
                            const std::function<int(LoadedModel&, bool first)>& body) const {
  const bool own_gpu = options.device.kind == DeviceKind::cuda && num_cuda_devices() >= ranks;
  int code = 0;
  run_ranks(
      ranks,
      [&](int rank, std::unique_ptr<Communicator> world) {
        LoadOptions mine = options;
        mine.device = thread_device(options.device, rank, ranks, own_gpu);
        if (own_gpu) {
          FlightRecorder& recorder = *recorder_of(*world);
          world = record_calls(over_nccl(std::move(world), mine.device), recorder);
        }
        LoadedModel model(mine, rank == 0 ? Log() : kQuiet, std::move(world));
        const int own = body(model, rank == 0);
        code = rank == 0 ? own : code;
      },
      thread_options());
  return code;
}

int ModelRanks::run_process(const ModelStart& start,
                            const std::function<int(LoadedModel&, bool first)>& body) const {
  const ModelChoice& choice = start.model;
  const auto ranks = static_cast<int>(start.ranks.tensor);
  check(ranks == facts_.size || (start.ranks.data_parallel && facts_.size % ranks == 0),
        facts_.size, " processes were started together, but ", ranks,
        ranks == 1 ? " rank holds" : " ranks divide",
        " the model: give --tensor-model-parallel-size ", facts_.size, ", or start ", ranks);
  constexpr double kTimeout = 600;
  const JoinedWorld& joined = process_->joined;
  LoadOptions options = choice.options();
  options.tensor = ranks;
  options.device = rank_device(choice.device, true, facts_, *joined.host);
  if (options.device.kind == DeviceKind::cuda) {
    options.device.index =
        (options.device.index + facts_.local_rank) % std::max(1, num_cuda_devices());
  }
  std::unique_ptr<Communicator> world =
      process_->watch.record(make_world(joined, Transport::automatic, options.device, kTimeout));
  const bool first = world->rank() == 0;
  LoadedModel model(options, first ? Log() : kQuiet, std::move(world));
  return body(model, first);
}

int as_started(std::ostream& out,
               const std::function<int(const ModelRanks& ranks, std::ostream& out)>& command) {
  const StartFacts facts = start_facts(environment_variables());
  if (facts.size == 1) {
    return command(ModelRanks(), out);
  }
  return run_joined(facts, [&](RankProcess& process) {
    std::ostringstream null_stream;
    return command(ModelRanks(facts, process), facts.rank == 0 ? out : null_stream);
  });
}

}  // namespace bloomery
