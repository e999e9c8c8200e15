// Training that learns to live with few bits, DeepSpeed's compression: linear layers compute with
// weights and inputs on grids of 2^bits numbers (ops/fake_quantization). Gradients pass the
// rounding as they are, and what is trained and stored are the numbers themselves.
//
// A grid of a weight follows from the weight as it is, in groups of the whole matrix. The grid of
// an input follows a range that a layer keeps: the moving average of the inputs' smallest and
// largest numbers, moved once a step by those of all micro-batches and ranks, within a micro-batch
// by its own. So no layout changes a grid.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/fake_quantization/fake_quantization.h"
#include "ops/linear/linear.h"

namespace bloomery {

struct WeightGrid {
  std::int64_t groups = 1;
  bool symmetric = true;
  // From step `offset` on: start_bits, one fewer after `period` steps, after twice as many, and so
  // on until target_bits. `at_once`: target_bits.
  int start_bits = 8, target_bits = 8;
  std::int64_t period = 1, offset = 0;
  bool at_once = false;

  int bits_after(std::int64_t steps) const;  // of the run; 0: not rounded

  bool operator==(const WeightGrid&) const = default;
};

struct InputGrid {
  int bits = 8;
  bool symmetric = true;
  std::int64_t offset = 0;

  bool operator==(const InputGrid&) const = default;
};

struct LayerGrids {
  std::optional<WeightGrid> weight;
  std::optional<InputGrid> input;

  bool operator==(const LayerGrids&) const = default;
};
using GridsOfWeights = std::map<std::string, LayerGrids>;  // by the weight's name

class FakeQuantLayers;

class FakeQuantLayer {
 public:
  FakeQuantLayer(FakeQuantLayers& layers, const Parameter& weight, const LayerGrids& grids,
                 std::int64_t number);

  bool rounds_input() const;
  // x on its grid, of layers that round their inputs.
  Tensor input(Context& context, const Tensor& x) const;
  // What gives the weight on its grid; empty where it is not rounded. The weight must have its
  // value here whenever it is called.
  WeightSource weight(Context& context);

 private:
  friend class FakeQuantLayers;
  Tensor rounded_weight(Stream& stream);

  FakeQuantLayers* layers_;
  const Parameter* weight_;
  LayerGrids grids_;
  std::int64_t number_;
  Tensor ranges_, kept_;  // of the weight in this pass; null: not yet made
};

class FakeQuantLayers {
 public:
  // Of the weights that have grids. `keep`: rounded copies of them stay through a pass (values are
  // not sharded). All must outlive the layers.
  FakeQuantLayers(Stream& stream, Mesh& mesh, const GridsOfWeights& grids,
                  const ParameterList& weights, bool keep);
  FakeQuantLayers(const FakeQuantLayers&) = delete;
  FakeQuantLayers& operator=(const FakeQuantLayers&) = delete;

  FakeQuantLayer* find(const Parameter& weight);  // null: it is not rounded

  // Weights may have changed in so many steps.
  void begin_pass(std::int64_t steps, bool training);
  void end_step();  // of training: ranges of inputs follow

  // The weights themselves move to their grids, where they stay until the next step of training:
  // the end of a run. `of` are their numbers here, in any dtype; they are changed.
  struct Numbers {
    const Parameter* parameter;
    Tensor numbers;
    std::int64_t first;  // in the parameter
  };
  // Collective. Returns the bits of the first; 0: no weight is rounded yet.
  int bake_quantization(std::span<const Numbers> of, std::int64_t steps, DType dtype);
  bool baked() const { return on_grids_; }
  void set_baked() { on_grids_ = true; }

  // The range of a layer's inputs, fp32 [2], for checkpoints.
  struct State {
    std::string name;
    Tensor range;
  };
  std::vector<State> states() const;

 private:
  friend class FakeQuantLayer;
  void bake(const FakeQuantLayer& layer, std::span<const Numbers> of, int bits, DType dtype);

  Stream& stream_;
  Mesh& mesh_;
  bool keep_;
  std::int64_t steps_ = 0;
  bool on_grids_ = false;
  std::vector<FakeQuantLayer> layers_;
  std::unordered_map<const Parameter*, std::size_t> numbers_;
  Tensor ranges_, seen_, nothing_;  // of inputs, two of each layer: kept, of the step in work, none
};

// The layer of a weight, or null.
FakeQuantLayer* fake_quant_layer(const Context& context, const Parameter& weight);

}  // namespace bloomery
