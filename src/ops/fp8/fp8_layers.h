// The linear layers of a rank that compute in 8 bits: their copies in fp8, and what scales them.
//
// A layer has three tensors: its input and its weight in E4M3, the gradient of its output in E5M2
// or E4M3. With delayed scaling the scale of a tensor follows from the amaxes of earlier steps; in
// the first step, when there are none, and with current scaling from the tensor itself.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/parameter.h"
#include "ops/fp8/quantize.h"

namespace bloomery {

enum class Fp8Recipe : std::uint8_t { delayed, current };
enum class Fp8Amax : std::uint8_t { most_recent, largest };  // which of a history counts

struct Fp8Options {
  Fp8Format gradients = Fp8Format::e5m2;
  Fp8Recipe recipe = Fp8Recipe::delayed;
  bool weight_gradients = true;  // false: their products are of 16 bits
  // Of delayed scaling.
  std::int64_t margin = 0, interval = 1, history = 1;
  Fp8Amax amax = Fp8Amax::most_recent;
};

class Fp8Layers;

// Which copies of a tensor are wanted.
struct Fp8Copies {
  bool rows = true, transposed = false;
};

// What is cast, as Quantize has it.
struct Fp8Source {
  Tensor x;
  Activation activation = Activation::none;
  Tensor derivative_at;
};

class Fp8Layer {
 public:
  Fp8Layer(Fp8Layers& layers, const Parameter& weight, std::int64_t number)
      : layers_(&layers), weight_(&weight), number_(number) {}

  const Fp8Options& options() const;
  // `record`: what is seen counts for later scales; not in evaluations.
  Fp8Tensor input(Stream& stream, const Fp8Source& x, const Fp8Copies& copies, bool record) const;
  // With `column_sums`, fp32 [num_fp8_sum_parts(rows), columns] or null, as Quantize gives them.
  Fp8Tensor gradient(Stream& stream, const Fp8Source& grad, const Fp8Copies& copies,
                     const Tensor& column_sums) const;
  // Of the weight as it is: it must have its value here. Made once in a pass where copies are kept,
  // all at once if `record`.
  Fp8Tensor weight(Stream& stream, const Fp8Copies& copies, bool record);

 private:
  friend class Fp8Layers;
  enum Role : std::int64_t { kInput, kWeight, kGradient, kNumRoles };
  struct Cast {
    Fp8Source source;
    Role role;
    Fp8Copies copies;
    bool record;
    Tensor column_sums;
  };
  Fp8Tensor quantized(Stream& stream, Cast cast, Fp8Tensor into = {}) const;

  Fp8Layers* layers_;
  const Parameter* weight_;
  std::int64_t number_;
  Fp8Tensor kept_;  // of the weight
  Fp8Copies made_{.rows = false};
};

class Fp8Layers {
 public:
  // The weights of the layers; those whose extents are no multiples of 16 are left out. `keep`:
  // copies of them stay from pass to pass (values are not sharded). Weights and stream must outlive
  // the layers.
  Fp8Layers(Stream& stream, const Fp8Options& options, const ParameterList& weights, bool keep);
  Fp8Layers(const Fp8Layers&) = delete;
  Fp8Layers& operator=(const Fp8Layers&) = delete;

  const std::vector<std::string>& left_out() const { return left_out_; }  // names of weights
  // The layer of a weight for so many rows of input; null: it computes in 16 bits.
  Fp8Layer* find(const Parameter& weight, std::int64_t rows);

  void begin_pass();  // weights may have changed

  bool has_scales() const { return options_.recipe == Fp8Recipe::delayed && !layers_.empty(); }
  // Of the step in work, to be raised to the largest over the ranks that share the layers.
  const Tensor& amaxes() const { return amaxes_; }
  void update_scales(Stream& stream);  // at the end of a step, where there are scales

  // What delayed scaling knows of a layer, fp32 [3, ScaleRow::length(history)], for checkpoints.
  struct State {
    std::string name;
    Tensor rows;
  };
  std::vector<State> states() const;
  void take_over_states(Stream& stream);  // they were written: scales are known

 private:
  friend class Fp8Layer;
  Tensor row(std::int64_t tensor) const;
  bool scales_are_known() const { return known_ && options_.recipe == Fp8Recipe::delayed; }

  Fp8Options options_;
  bool keep_;
  bool known_ = false;  // some step has left its amaxes
  std::vector<Fp8Layer> layers_;
  std::vector<std::string> left_out_;
  std::unordered_map<const Parameter*, std::size_t> numbers_;
  Tensor amaxes_, rows_, inverse_, largest_;  // by tensor: layer x role
};

}  // namespace bloomery
