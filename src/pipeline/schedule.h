// What one stage of a pipeline does in a step, as a list that its executor runs from front to back.
//
// A stage holds one or more chunks of the model. Chunk c of stage s is part c x stages + s of the
// whole: it gets activations from the part before it and gradients from the one behind.
// Neighbouring sends and receives are one exchange (steps()), so that stages which send to each
// other cannot wait for each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/layout.h"

namespace bloomery {

struct Instruction {
  enum class Work : std::uint8_t {
    forward,
    backward,         // both parts of it:
    backward_input,   // the gradients of the inputs
    backward_weight,  // and those of the weights, at any time after
    receive_activation,
    send_activation,
    receive_gradient,
    send_gradient,
  };
  Work work = Work::forward;
  std::int64_t micro_batch = 0;
  int chunk = 0;

  bool is_transfer() const { return work >= Work::receive_activation; }
  bool operator==(const Instruction&) const = default;
};
using Instructions = std::vector<Instruction>;
const char* name(Instruction::Work work);          // "backward input"
std::string text(const Instruction& instruction);  // "forward of micro-batch 3, chunk 0"

// What is done at once: one computation, or transfers that go together.
std::vector<std::span<const Instruction>> steps(std::span<const Instruction> list);

// The stage at the other end of a transfer.
int peer_stage(const Instruction& transfer, int stage, int num_stages);

struct PipelineShape {
  int num_stages = 1;
  std::int64_t num_micro_batches = 1;
  int num_chunks = 1;
};

// Why there is no such schedule of this shape; empty: there is.
std::string problem(PipelineSchedule schedule, const PipelineShape& shape);

// Forward passes alone.
Instructions forward_only(int stage, const PipelineShape& shape);

// All forward passes, then all backward passes.
Instructions gpipe(int stage, const PipelineShape& shape);

// One forward, one backward: a stage runs ahead by as many forwards as there are stages behind it,
// then alternates, so that at most `num_stages - stage` tapes exist at a time. With one stage every
// forward is followed by its backward.
//
// Of several chunks each is a stage in this sense. Micro-batches pass through them in groups of
// num_stages: a stage takes its first chunk's part of a whole group, then its second chunk's, so
// that it can work while a micro-batch goes round the other stages (Megatron's interleaving). The
// pipeline fills and drains in 1 / num_chunks of the time.
Instructions one_forward_one_backward(int stage, const PipelineShape& shape);

// 1F1B with backward in two parts: gradients of weights come as many micro-batches later as the
// stage has tapes to spare, up to `num_stages` in all, and so fill the time at the end in which a
// stage would only wait for others (the schedule ZB-H1). One chunk.
Instructions zero_bubble(int stage, const PipelineShape& shape);

Instructions instructions(PipelineSchedule schedule, int stage, const PipelineShape& shape);

// What flags, layouts and help know of a schedule.
struct ScheduleRow {
  PipelineSchedule schedule;
  const char* word;          // of --pipeline-schedule
  const char* layout_word;   // of a layout such as tp2+pp2+zb; null: the schedule that needs none
  const char* does;          // completes "WORD ..."
  bool keeps_order = false;  // passes of one micro-batch are not mixed with others' on one stage
  bool interleaves = false;  // several chunks per stage
  Instructions (*of_stage)(int stage, const PipelineShape& shape);
};
std::span<const ScheduleRow> pipeline_schedules();
const ScheduleRow& row_of(PipelineSchedule schedule);
std::vector<std::pair<std::string, PipelineSchedule>> schedule_words();
std::string schedule_help();  // "Pipeline schedule: gpipe runs ..., 1f1b ..."

}  // namespace bloomery
