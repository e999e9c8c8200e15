#include "train/plan/what_fits.h"

#include <algorithm>
#include <cstdio>

#include "train/plan/read_pretrain.h"

namespace bloomery {
namespace {

std::string amount(std::int64_t bytes) {
  char text[32];
  const auto value = static_cast<double>(bytes);
  std::snprintf(text, sizeof text, value >= 0x1p30 ? "%.2f GiB" : "%.2f MiB",
                value / (value >= 0x1p30 ? 0x1p30 : 0x1p20));
  return text;
}

PlannedMemory planned(const PretrainOptions& options, std::int64_t vocabulary, const Room& room) {
  return plan_memory(make_plan(options, vocabulary), sample_fields(options), room.kind);
}

bool fits(const PretrainOptions& options, std::int64_t vocabulary, const Room& room) {
  return problems(options).empty() && room.holds(planned(options, vocabulary, room));
}

// One way to take less memory: what it is called, and what it does to the options. It does nothing
// where it would change nothing.
struct Change {
  std::string flags;
  PretrainOptions options;
};

class Changes {
 public:
  explicit Changes(const PretrainOptions& from) : from_(from) {
    from_.batch.global = global_batch_size(from);  // which no change is to change
    from_.batch.accumulation.reset();
  }

  // Those that cost least first; what only a GPU gains by is left out for CPUs.
  std::vector<Change> all(bool on_gpu) {
    add("--recompute-activations", selective);
    for (std::int64_t micro = from_.batch.micro / 2; micro >= 1; micro /= 2) {
      add(concat("--micro-batch-size ", micro), [&](auto& o) { o.batch.micro = micro; });
    }
    add("--checkpoint-activations", full);
    const std::int64_t chunk = chunk_to_try(from_);
    const std::string in_chunks =
        concat("--ds-sequence-parallel-fpdt --ds-sequence-parallel-fpdt-chunk-size ", chunk);
    if (chunk > 0) {
      add(in_chunks, [&](auto& o) { o.parallel.chunks = {.enabled = true, .length = chunk}; });
    }
    if (on_gpu) {
      add("--cpu-optimizer", optimizer_to_host);
      add("--checkpoint-activations --checkpoint-in-cpu", inputs_to_host);
    }
    for (std::int64_t stage = 1; stage <= 3 && from_.parallel.data_ranks() > 1; ++stage) {
      if (stage > from_.parallel.zero_stage.value_or(0)) {
        add(concat("--zero-stage ", stage), [&](auto& o) { o.parallel.zero_stage = stage; });
      }
    }
    add("--micro-batch-size 1 --checkpoint-activations", smallest);
    if (on_gpu) {
      add("--micro-batch-size 1 --checkpoint-activations --cpu-optimizer", [](auto& o) {
        smallest(o);
        optimizer_to_host(o);
      });
      add("--zero-stage 3 --remote-device cpu", weights_to_host);
      add("--micro-batch-size 1 --checkpoint-activations --checkpoint-in-cpu --zero-stage 3 "
          "--remote-device cpu",
          [](auto& o) {
            smallest(o);
            inputs_to_host(o);
            weights_to_host(o);
          });
    }
    if (on_gpu && chunk > 0) {
      add(in_chunks +
              " --ds-sequence-parallel-fpdt-offloading --checkpoint-in-cpu "
              "--micro-batch-size 1 --zero-stage 3 --remote-device cpu",
          [&](auto& o) {
            o.batch.micro = 1;
            o.parallel.chunks = {.enabled = true, .length = chunk, .offload = true};
            o.offload.activations = true;
            weights_to_host(o);
          });
    }
    return std::move(changes_);
  }

 private:
  // Tokens of a sequence that layers could compute at once; 0: it is short, or they do already.
  static std::int64_t chunk_to_try(const PretrainOptions& o) {
    constexpr std::int64_t kLong = 8192, kParts = 8, kLeast = 2048;
    return o.data.seq_length < kLong || o.parallel.chunks.enabled
               ? 0
               : std::max(o.data.seq_length / kParts, kLeast);
  }
  static void selective(PretrainOptions& o) {
    if (recompute_options(o.recompute, 1).method == RecomputeOptions::Method::none) {
      o.recompute.granularity = RecomputeFlags::Granularity::selective;
    }
  }
  static void full(PretrainOptions& o) { o.recompute = {.checkpoint_activations = true}; }
  static void smallest(PretrainOptions& o) {
    full(o);
    o.batch.micro = 1;
  }
  static void optimizer_to_host(PretrainOptions& o) { o.offload.cpu_optimizer = true; }
  static void weights_to_host(PretrainOptions& o) {
    o.parallel.zero_stage = 3;
    o.offload.parameters = OffloadFlags::Device::cpu;
  }
  static void inputs_to_host(PretrainOptions& o) {
    full(o);
    o.offload.activations = true;
  }

  template <class Apply>
  void add(const std::string& flags, const Apply& apply) {
    changes_.push_back({flags, from_});
    apply(changes_.back().options);
  }

  PretrainOptions from_;
  std::vector<Change> changes_;
};

}  // namespace

bool Room::holds(const PlannedMemory& memory) const {
  const bool shared = kind != DeviceKind::cuda;  // one memory for both
  return memory.total() <= device &&
         (shared ? memory.total() + memory.on_host : memory.on_host) <= host;
}

Room room_for(const DeviceOptions& device, const OffloadFlags& flags, int ranks) {
  const auto share = [&](std::size_t bytes) {
    return static_cast<std::int64_t>(bytes / static_cast<std::size_t>(std::max(1, ranks)));
  };
  Room room{device.kind, share(raw::free_bytes(device.kind, device.index)),
            share(raw::free_bytes(DeviceKind::cpu, 0))};
  if (flags.memory_limit_gib) {
    room.device = std::min(room.device, static_cast<std::int64_t>(memory_limit(flags)));
  }
  return room;
}

std::string memory_summary(const PlannedMemory& m, const Room& room) {
  std::string text = concat(
      " peak memory per rank: ", amount(m.total()), " of ", amount(room.device),
      " on the device (parameters ", amount(m.parameters), ", gradients ", amount(m.gradients),
      ", optimizer ", amount(m.optimizer), ", activations ", amount(m.activations), ")");
  if (m.on_host > 0) {
    text += concat(", ", amount(m.on_host), " of ", amount(room.host),
                   " on the host (parameters and optimizer ", amount(m.state_on_host),
                   ", activations ", amount(m.on_host - m.state_on_host), ")");
  }
  return m.in_files > 0 ? concat(text, ", ", amount(m.in_files), " in files") : text;
}

std::vector<std::string> settings_that_fit(const PretrainOptions& options, std::int64_t vocabulary,
                                           const Room& room) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  bool smaller_batch = false;
  for (const Change& change : Changes(options).all(room.kind == DeviceKind::cuda)) {
    const bool batch_alone = change.flags.rfind("--micro-batch-size", 0) == 0 &&
                             change.flags.find("--checkpoint") == std::string::npos;
    if (found.size() < kMost && !(batch_alone && smaller_batch) &&
        fits(change.options, vocabulary, room)) {
      found.push_back(change.flags);
      smaller_batch = smaller_batch || batch_alone;
    }
  }
  return found;
}

std::string advice(const PretrainOptions& options, std::int64_t vocabulary, const Room& room) {
  const std::vector<std::string> settings = settings_that_fit(options, vocabulary, room);
  if (settings.empty()) {
    return "no smaller micro-batch, recomputation or offload makes it fit here: split the model "
           "over "
           "more ranks with --tensor-model-parallel-size or --pipeline-model-parallel-size";
  }
  std::string text = "it would fit with ";
  for (std::size_t i = 0; i < settings.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == settings.size() ? ", or with " : ", ") + settings[i];
  }
  return text;
}

std::int64_t largest_micro_batch(const PretrainOptions& options, std::int64_t vocabulary,
                                 const Room& room) {
  constexpr double kForScratch = 0.92;
  Room rest = room;
  rest.device = static_cast<std::int64_t>(kForScratch * static_cast<double>(room.device));
  PretrainOptions o = options;
  const std::int64_t share = global_batch_size(o) / o.parallel.data_ranks();
  o.batch.global = share * o.parallel.data_ranks();
  for (std::int64_t micro = share; micro >= 1; --micro) {
    o.batch.micro = micro;
    if (share % micro == 0 && fits(o, vocabulary, rest)) {
      return micro;
    }
  }
  o.batch.micro = 1;
  throw Error(concat("--micro-batch-size auto: not even one sequence fits: ",
                     memory_summary(planned(o, vocabulary, room), room), "; ",
                     advice(o, vocabulary, room)));
}

}  // namespace bloomery
