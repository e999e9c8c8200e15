#include "models/model.h"

#include <algorithm>

#include "device/op_clock.h"
#include "models/family.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

void check_possible(const ModelOptions& options, const Mesh& mesh) {
  MeshDegrees degrees;
  degrees.tensor = mesh.degree(Axis::tensor);
  degrees.context = mesh.degree(Axis::context);
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
}

State Model::forward(Context& context, State state, const RecomputeOptions& recompute) const {
  const OpScope phase(context.stream, OpKind::forward);
  return run_blocks(context, std::move(state), blocks_, recompute);
}

StateShape Model::state_shape(const Batch& batch) const {
  const DType dtype = options_.residual.fp32 ? accumulation_dtype(dtype_) : dtype_;
  return {.stream = {dtype, {num_held_tokens(*mesh_, batch), options_.hidden_size}}};
}

int Model::num_blocks(const ModelOptions& options) {
  return find_family(options.family).num_blocks(options);
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
