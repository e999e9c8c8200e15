#include "models/model.h"

#include <algorithm>

#include "device/op_clock.h"
#include "models/family.h"
#include "nn/adapter.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

void check_possible(const ModelOptions& options, const Mesh& mesh) {
  MeshDegrees degrees;
  degrees.tensor = mesh.degree(Axis::tensor);
  degrees.context = mesh.degree(Axis::context);
  degrees.ring = mesh.degree(Axis::ring);
  degrees.expert = mesh.degree(Axis::expert);
  std::string all;
  for (const std::string& problem : problems(options, degrees)) {
    all += "\n  " + problem;
  }
  check(all.empty(), "this model cannot be built:", all);
}

ParameterList distinct_parameters(const Blocks& blocks) {
  ParameterList all, distinct;
  for (const auto& block : blocks) {
    block->collect(all);
  }
  for (Parameter* parameter : all) {
    if (std::find(distinct.begin(), distinct.end(), parameter) == distinct.end()) {
      parameter->uses = static_cast<int>(std::ranges::count(all, parameter));
      distinct.push_back(parameter);
    }
  }
  return distinct;
}

}  // namespace

Model::Model(const ModelOptions& options, const Mesh& mesh, DType dtype,
             std::optional<BlockRange> slice)
    : options_(completed(options)), mesh_(&mesh), dtype_(dtype) {
  check_possible(options_, mesh);
  slice_ = slice.value_or(BlockRange{0, num_blocks(options_)});
  check(0 <= slice_.begin && slice_.begin < slice_.end && slice_.end <= num_blocks(options_),
        "blocks ", slice_.begin, " to ", slice_.end, " of a model with ", num_blocks(options_));
  blocks_ = find_family(options_.family).blocks(options_, mesh, dtype, slice_);
  parameters_ = distinct_parameters(blocks_);
  for (Parameter* parameter : parameters_) {
    parameter->frozen = options_.adapter.enabled && !is_adapter_parameter(parameter->name);
  }
}

State Model::forward(Context& context, State state, const RecomputeOptions& recompute) const {
  const OpScope phase(context.stream, OpKind::forward);
  return run_blocks(context, std::move(state), blocks_, recompute);
}

StateShape Model::input_shape(const Batch& batch) const {
  const DType stream = options_.residual.fp32 ? accumulation_dtype(dtype_) : dtype_;
  const auto tokens_of = [&](const Batch& held) {
    return Shape{num_local_tokens(*mesh_, held), options_.hidden_size};
  };
  const int decoder = decoder_begin(options_);
  if (slice_.begin < decoder) {
    return {.stream = {stream, tokens_of(*batch.encoder)}};
  }
  StateShape shape;
  if (decoder > 0) {
    shape.encoder = {dtype_, tokens_of(*batch.encoder)};
  }
  if (decoder == 0 || slice_.begin > decoder) {
    shape.stream = {stream, tokens_of(batch)};
  }
  return shape;
}

int Model::num_blocks(const ModelOptions& options) {
  return find_family(options.family).num_blocks(options);
}

int Model::decoder_begin(const ModelOptions& options) {
  const auto begin = find_family(options.family).decoder_begin;
  return begin != nullptr ? begin(options) : 0;
}

int decoder_stage(const ModelOptions& options, const Layout& layout) {
  if (layout.decoder_stage > 0) {
    return layout.decoder_stage;
  }
  const int stages = layout.degrees.pipeline;  // of which one end of each part has no layer
  const int encoder = Model::decoder_begin(options) - 2, all = Model::num_blocks(options) - 4;
  const int equal = (2 * stages * encoder + all) / (2 * all);
  return std::min(std::max({equal, 1, stages - (all - encoder)}), std::min(stages - 1, encoder));
}

std::int64_t num_parameters(const ModelOptions& options) {
  const Model model(options, Mesh::single(), DType::fp32);
  std::int64_t count = 0;
  for (const Parameter* parameter : model.parameters()) {
    count += parameter->box.global.numel();
  }
  return count;
}

std::optional<std::int64_t> max_length(const ModelOptions& options) {
  return options.positions.has_table() ? std::optional(options.positions.max_length) : std::nullopt;
}

}  // namespace bloomery
