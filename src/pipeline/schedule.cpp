#include "pipeline/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

constexpr const char* kNames[] = {"forward",          "backward",           "backward input",
                                  "backward weight",  "receive activation", "send activation",
                                  "receive gradient", "send gradient"};

struct Pass {
  std::int64_t micro_batch = 0;
  int chunk = 0;
};

// Writes down what a stage does, with the transfers that go with it.
class Writer {
 public:
  Writer(int stage, const PipelineShape& shape)
      : stage_(stage), last_stage_(shape.num_stages - 1), last_chunk_(shape.num_chunks - 1) {
    check(0 <= stage && stage < shape.num_stages && shape.num_micro_batches >= 1 &&
              shape.num_chunks >= 1,
          "pipeline: no schedule for ", shape.num_micro_batches, " micro-batches in stage ", stage,
          " of ", shape.num_stages);
  }

  void forward(const Pass& pass) {
    add(receives_activation(pass), Work::receive_activation, pass);
    add(true, Work::forward, pass);
    add(sends_activation(pass), Work::send_activation, pass);
  }
  void backward(const Pass& pass, Work work) {
    add(sends_activation(pass), Work::receive_gradient, pass);
    add(true, work, pass);
    add(receives_activation(pass), Work::send_gradient, pass);
  }
  void weights(const Pass& pass) { add(true, Work::backward_weight, pass); }

  // A pass of each direction (null: none), then everything that it sends, and that the next passes
  // need, in one exchange.
  void both(const Pass* forward, const Pass* backward, const Pass* next_forward,
            const Pass* next_backward) {
    const auto add_if = [this](const Pass* pass, bool happens, Work work) {
      if (pass != nullptr) {
        add(happens, work, *pass);
      }
    };
    add_if(forward, true, Work::forward);
    add_if(backward, true, Work::backward);
    add_if(forward, forward && sends_activation(*forward), Work::send_activation);
    add_if(next_forward, next_forward && receives_activation(*next_forward),
           Work::receive_activation);
    add_if(backward, backward && receives_activation(*backward), Work::send_gradient);
    add_if(next_backward, next_backward && sends_activation(*next_backward),
           Work::receive_gradient);
  }

  Instructions take() { return std::move(list_); }

 private:
  bool receives_activation(const Pass& pass) const { return stage_ > 0 || pass.chunk > 0; }
  bool sends_activation(const Pass& pass) const {
    return stage_ < last_stage_ || pass.chunk < last_chunk_;
  }
  void add(bool happens, Work work, const Pass& pass) {
    if (happens) {
      list_.push_back({work, pass.micro_batch, pass.chunk});
    }
  }
  int stage_, last_stage_, last_chunk_;
  Instructions list_;
};

bool goes_forward(Work work) {
  return work == Work::receive_activation || work == Work::send_activation;
}

// Passes of a stage in the order in which micro-batches come to it: groups of num_stages, each of
// them through one chunk after another.
std::vector<Pass> passes(const PipelineShape& shape, bool from_last_chunk) {
  std::vector<Pass> all;
  for (std::int64_t first = 0; first < shape.num_micro_batches; first += shape.num_stages) {
    const std::int64_t end = std::min(first + shape.num_stages, shape.num_micro_batches);
    for (int i = 0; i < shape.num_chunks; ++i) {
      for (std::int64_t m = first; m < end; ++m) {
        all.push_back({m, from_last_chunk ? shape.num_chunks - 1 - i : i});
      }
    }
  }
  return all;
}

// A stage runs ahead until its first micro-batch has been through all chunks, here and in the
// stages behind; then one pass of each direction between two exchanges. Stages that exchange after
// every pass would wait for each other round the ring.
Instructions interleaved(int stage, const PipelineShape& shape) {
  Writer writer(stage, shape);
  const std::vector<Pass> forward = passes(shape, false), backward = passes(shape, true);
  const auto count = static_cast<std::int64_t>(forward.size());
  const std::int64_t ahead = std::min<std::int64_t>(
      2 * (shape.num_stages - 1 - stage) + (shape.num_chunks - 1) * std::int64_t{shape.num_stages},
      count);
  const auto at = [count](const std::vector<Pass>& all, std::int64_t i) {
    return 0 <= i && i < count ? &all[static_cast<std::size_t>(i)] : nullptr;
  };
  writer.both(nullptr, nullptr, at(forward, 0), nullptr);
  for (std::int64_t i = 0; i < count + ahead; ++i) {
    writer.both(at(forward, i), at(backward, i - ahead), at(forward, i + 1),
                at(backward, i + 1 - ahead));
  }
  return writer.take();
}

}  // namespace

const char* name(Work work) { return kNames[static_cast<int>(work)]; }

std::string text(const Instruction& i) {
  return concat(name(i.work), " of micro-batch ", i.micro_batch, ", chunk ", i.chunk);
}

std::vector<std::span<const Instruction>> steps(std::span<const Instruction> list) {
  std::vector<std::span<const Instruction>> all;
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = begin + 1;
    while (list[begin].is_transfer() && end < list.size() && list[end].is_transfer()) {
      ++end;
    }
    all.push_back(list.subspan(begin, end - begin));
    begin = end;
  }
  return all;
}

int peer_stage(const Instruction& transfer, int stage, int num_stages) {
  const bool sends = transfer.work == Work::send_activation || transfer.work == Work::send_gradient;
  const int step = sends == goes_forward(transfer.work) ? 1 : num_stages - 1;
  return (stage + step) % num_stages;
}

std::string problem(PipelineSchedule schedule, const PipelineShape& shape) {
  if (shape.num_chunks == 1) {
    return {};
  }
  if (!row_of(schedule).interleaves) {
    return "only the schedule 1f1b interleaves several chunks per stage";
  }
  if (shape.num_stages == 1) {
    return "several chunks per stage need a pipeline of at least two stages";
  }
  return shape.num_micro_batches % shape.num_stages == 0
             ? ""
             : concat("several chunks per stage need micro-batches in multiples of ",
                      shape.num_stages, " stages, not ", shape.num_micro_batches);
}

Instructions forward_only(int stage, const PipelineShape& shape) {
  Writer writer(stage, shape);
  for (const Pass& pass : passes(shape, false)) {
    writer.forward(pass);
  }
  return writer.take();
}

Instructions gpipe(int stage, const PipelineShape& shape) {
  Writer writer(stage, shape);
  for (std::int64_t m = 0; m < shape.num_micro_batches; ++m) {
    writer.forward({m});
  }
  for (std::int64_t m = 0; m < shape.num_micro_batches; ++m) {
    writer.backward({m}, Work::backward);
  }
  return writer.take();
}

Instructions one_forward_one_backward(int stage, const PipelineShape& shape) {
  if (shape.num_chunks > 1) {
    return interleaved(stage, shape);
  }
  Writer writer(stage, shape);
  const std::int64_t count = shape.num_micro_batches;
  const std::int64_t ahead = std::min<std::int64_t>(shape.num_stages - 1 - stage, count);
  for (std::int64_t m = 0; m < count + ahead; ++m) {
    if (m < count) {
      writer.forward({m});
    }
    if (m >= ahead) {
      writer.backward({m - ahead}, Work::backward);
    }
  }
  return writer.take();
}

Instructions zero_bubble(int stage, const PipelineShape& shape) {
  Writer writer(stage, shape);
  const std::int64_t count = shape.num_micro_batches;
  const std::int64_t ahead = std::min<std::int64_t>(shape.num_stages - 1 - stage, count);
  std::int64_t next_weights = 0;
  for (std::int64_t m = 0; m < count + ahead; ++m) {
    if (m < count) {
      writer.forward({m});
    }
    if (m >= ahead) {
      writer.backward({m - ahead}, Work::backward_input);
      if (m - ahead >= stage) {
        writer.weights({next_weights++});
      }
    }
  }
  while (next_weights < count) {
    writer.weights({next_weights++});
  }
  return writer.take();
}

Instructions instructions(PipelineSchedule schedule, int stage, const PipelineShape& shape) {
  check(problem(schedule, shape).empty(), "pipeline: ", problem(schedule, shape));
  return row_of(schedule).of_stage(stage, shape);
}

std::span<const ScheduleRow> pipeline_schedules() {
  static constexpr ScheduleRow kRows[] = {
      {.schedule = PipelineSchedule::gpipe,
       .word = "gpipe",
       .layout_word = "gpipe",
       .does = "runs all forward passes first",
       .of_stage = gpipe},
      {.schedule = PipelineSchedule::one_forward_one_backward,
       .word = "1f1b",
       .layout_word = nullptr,
       .does = "alternates",
       .keeps_order = true,
       .interleaves = true,
       .of_stage = one_forward_one_backward},
      {.schedule = PipelineSchedule::zero_bubble,
       .word = "zb-h1",
       .layout_word = "zb",
       .does = "also delays weight gradients to fill the bubble",
       .of_stage = zero_bubble},
  };
  return kRows;
}

const ScheduleRow& row_of(PipelineSchedule schedule) {
  const auto rows = pipeline_schedules();
  return *std::ranges::find(rows, schedule, &ScheduleRow::schedule);
}

std::vector<std::pair<std::string, PipelineSchedule>> schedule_words() {
  std::vector<std::pair<std::string, PipelineSchedule>> words;
  for (const ScheduleRow& row : pipeline_schedules()) {
    words.emplace_back(row.word, row.schedule);
  }
  return words;
}

std::string schedule_help() {
  std::string help;
  for (const ScheduleRow& row : pipeline_schedules()) {
    help += concat(help.empty() ? "Pipeline schedule: " : ", ", row.word, " ", row.does);
  }
  return help + ".";
}

}  // namespace bloomery
