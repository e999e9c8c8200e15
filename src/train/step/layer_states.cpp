#include "train/step/layer_states.h"

namespace bloomery {
namespace {

// Names behind those of weights, and of facts about all.
constexpr std::string_view kFp8Scales = "/fp8_scales";
constexpr std::string_view kInputRange = "/input_range";  // of layers that round it
constexpr const char* kFp8Gradients = "fp8_gradients";    // their format
constexpr const char* kOnGrids = "weights_on_grids";

std::string gradient_format(const Rank& rank) { return name(rank.options().fp8->gradients); }

// What delayed scaling knows of each layer, or nothing of all where something is missing.
void load_fp8_scales(Rank& rank, const CheckpointReader& reader, std::vector<std::string>& notes) {
  if (rank.stage().features().fp8() == nullptr || !rank.stage().features().fp8()->has_scales()) {
    return;
  }
  const std::vector<Fp8Layers::State> states = rank.stage().features().fp8()->states();
  const auto format = reader.state().extra.find(kFp8Gradients);
  const bool same_format =
      format != reader.state().extra.end() && format->second == gradient_format(rank);
  for (const auto& [name, rows] : states) {
    const std::string stored = concat(name, kFp8Scales);
    if (!same_format || !reader.contains(stored) ||
        !(reader.tensor(stored).shape == rows.shape())) {
      notes.push_back(concat(reader.folder().string(),
                             reader.contains(stored)
                                 ? " has scales of fp8 of another --fp8-format or history length"
                                 : " has no scales of fp8",
                             ": they start anew, and the run is no longer bit for bit as one that "
                             "was never interrupted"));
      return;
    }
  }
  for (const auto& [name, rows] : states) {
    std::vector<std::byte> bytes(rows.bytes());
    reader.read(concat(name, kFp8Scales), Box::whole(rows.shape()), bytes);
    rank.stream().copy(rows.data(), bytes.data(), bytes.size());
    rank.stream().synchronize();  // the host bytes end here
  }
  rank.stage().features().fp8()->take_over_states(rank.stream());
}

void load_input_ranges(Rank& rank, const CheckpointReader& reader,
                       std::vector<std::string>& notes) {
  if (rank.stage().features().fake_quant_layers() == nullptr) {
    return;
  }
  if (reader.state().extra.contains(kOnGrids)) {
    rank.stage().features().fake_quant_layers()->set_baked();
  }
  bool all = true;
  for (const auto& [name, range] : rank.stage().features().fake_quant_layers()->states()) {
    const std::string stored = concat(name, kInputRange);
    if (!reader.contains(stored) || !(reader.tensor(stored).shape == range.shape())) {
      all = false;
      continue;
    }
    std::vector<std::byte> bytes(range.bytes());
    reader.read(stored, Box::whole(range.shape()), bytes);
    rank.stream().copy(range.data(), bytes.data(), bytes.size());
    rank.stream().synchronize();  // the host bytes end here
  }
  if (!all) {
    notes.push_back(concat(reader.folder().string(),
                           " has no ranges of layers' inputs, which activation_quantization "
                           "follows: they start anew"));
  }
}

}  // namespace

// All ranks of a stage have the same.
void add_layer_states(HostStaging& stage, Rank& rank) {
  if (rank.mesh().index(kTokenReplicaAxes) > 0) {
    return;
  }
  const auto add = [&](const std::string& name, const Tensor& numbers) {
    stage.add(name, numbers.dtype(), Box::whole(numbers.shape()), numbers.data());
  };
  if (rank.stage().features().fp8() != nullptr) {
    for (const auto& [name, rows] : rank.stage().features().fp8()->states()) {
      add(concat(name, kFp8Scales), rows);
    }
  }
  if (rank.stage().features().fake_quant_layers() != nullptr) {
    for (const auto& [name, range] : rank.stage().features().fake_quant_layers()->states()) {
      add(concat(name, kInputRange), range);
    }
  }
}

void describe_layer_states(Rank& rank, RunState& state) {
  if (rank.stage().features().fp8() != nullptr) {
    state.extra[kFp8Gradients] = gradient_format(rank);
  }
  if (rank.stage().features().fake_quant_layers() != nullptr &&
      rank.stage().features().fake_quant_layers()->baked()) {
    state.extra[kOnGrids] = "1";
  }
}

void load_layer_states(Rank& rank, const CheckpointReader& reader,
                       std::vector<std::string>& notes) {
  load_fp8_scales(rank, reader, notes);
  load_input_ranges(rank, reader, notes);
}

}  // namespace bloomery
