#include "parallel/parallel_linear.h"

#include <functional>
#include <optional>
#include <utility>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "parallel/async_collective.h"
#include "parallel/fake_quant_layers.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

// The gradient of a column-parallel layer's input: a sum over ranks of what `part` got, of which
// this rank keeps the tokens that it holds.
class InputGradient {
 public:
  InputGradient(Context& context, Slot x, Slot part)
      : ranks_(context.mesh.axis(Axis::tensor)),
        divided_(context.mesh.divides_tokens()),
        x_(std::move(x)),
        part_(std::move(part)),
        async_(ranks_.size() > 1 ? context.communication : nullptr) {}

  void start(Tape& tape) {
    if (divided_) {
      held_ = Tensor::empty(tape.stream(), x_->dtype, x_->shape);
    }
    async_.start(tape.stream(), [&](Stream& stream) {
      if (divided_) {
        ranks_.reduce_scatter(tape.grad(part_), held_, Reduce::sum, stream);
      } else {
        ranks_.all_reduce(tape.grad(part_), Reduce::sum, stream);
      }
    });
  }
  void finish(Tape& tape) {
    async_.wait(tape.stream());
    if (!divided_) {
      if (!tape.adopt(x_, part_)) {
        write_grad(tape.stream(), tape.grad(part_), tape.sink(x_));
      }
    } else if (x_->grad) {
      write_grad(tape.stream(), held_, tape.sink(x_));
    } else {
      tape.set_grad(x_, std::move(held_));
    }
    held_ = {};
  }

 private:
  Communicator& ranks_;
  bool divided_;
  Slot x_, part_;
  AsyncCollective async_;
  Tensor held_;
};

// All tokens, of which each rank keeps its own or can make them again: gathered when they are
// needed.
class GatheredInput {
 public:
  GatheredInput(Context& context, const LinearInput& held)
      : ranks_(context.mesh.axis(Axis::tensor)),
        kept_(held.rematerialize ? Tensor() : held.value.data),
        rematerialize_(held.rematerialize),
        async_(context.communication) {}

  Tensor gather(const Tensor& held, Stream& stream) const {
    Tensor all = empty(held, stream);
    ranks_.all_gather(held, all, stream);
    return all;
  }
  // Gathers beside what `compute` does next.
  void start(Stream& compute) {
    held_ = held(compute);
    all_ = empty(held_, compute);
    async_.start(compute, [&](Stream& stream) { ranks_.all_gather(held_, all_, stream); });
  }
  Tensor take(Stream& compute) {
    if (!all_) {
      return gather(held(compute), compute);
    }
    async_.wait(compute);
    held_ = {};
    return std::exchange(all_, {});
  }

 private:
  Tensor held(Stream& stream) const { return rematerialize_ ? rematerialize_(stream) : kept_; }
  Tensor empty(const Tensor& held, Stream& stream) const {
    return Tensor::empty(stream, held.dtype(), {held.shape()[0] * ranks_.size(), held.shape()[1]});
  }
  Communicator& ranks_;
  Tensor kept_;
  Rematerialize rematerialize_;
  AsyncCollective async_;
  Tensor held_, all_;  // while it is gathered
};

// The input of a layer on its grid, where it has one. It is kept as it is: what would make the
// input again knows no grid.
struct Rounded {
  Rounded(Context& context, const Parameter& weight, const Tensor& x) {
    const FakeQuantLayer* const grids = fake_quant_layer(context, weight);
    if (grids != nullptr && grids->rounds_input()) {
      numbers = grids->input(context, x);
    }
  }
  explicit operator bool() const { return static_cast<bool>(numbers); }
  Rematerialize rematerialize() const {
    return [kept = numbers](Stream&) { return kept; };
  }
  Tensor numbers;
};

std::unique_ptr<Parameter> bias_parameter(bool wanted, const std::string& name, const Box& box) {
  return wanted ? std::make_unique<Parameter>(make_parameter(name + ".bias", box, {}, false))
                : nullptr;
}

std::unique_ptr<LowRank> low_rank(const std::optional<LowRankOptions>& options,
                                  const std::string& name, const Box& weight) {
  return options ? std::make_unique<LowRank>(name, weight, *options) : nullptr;
}

}  // namespace

ParallelLinear::ParallelLinear(Cut cut, Parameter weight, std::unique_ptr<Parameter> bias,
                               std::unique_ptr<LowRank> adapter)
    : cut_(cut),
      weight_(std::make_unique<Parameter>(std::move(weight))),
      bias_(std::move(bias)),
      adapter_(std::move(adapter)) {}

ParallelLinear ParallelLinear::column(const Mesh& mesh, const std::string& name,
                                      const Shape& out_shape, int split_dim, std::int64_t in,
                                      bool bias, const Init& weight_init,
                                      const std::optional<LowRankOptions>& adapter) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(split_dim >= 0 && split_dim < out_shape.rank() && out_shape[split_dim] % num_ranks == 0,
        name, ": dimension ", split_dim, " of the output ", out_shape, " cannot be divided among ",
        num_ranks, " tensor-parallel ranks: choose --tensor-model-parallel-size that divides it");
  Shape weight_shape = out_shape;
  weight_shape.append(in);
  const Box box = Box::whole(weight_shape).split(split_dim, rank, num_ranks);
  return {Cut::outputs, make_parameter(name + ".weight", box, weight_init, true),
          bias_parameter(bias, name, Box::whole(out_shape).split(split_dim, rank, num_ranks)),
          low_rank(adapter, name, box)};
}

ParallelLinear ParallelLinear::row(const Mesh& mesh, const std::string& name, std::int64_t out,
                                   std::int64_t in, bool bias, const Init& weight_init,
                                   const std::optional<LowRankOptions>& adapter) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(in % num_ranks == 0, name, ": ", in, " input features cannot be divided among ", num_ranks,
        " tensor-parallel ranks: choose --tensor-model-parallel-size that divides them");
  const Box box = Box::whole({out, in}).split(1, rank, num_ranks);
  return {Cut::inputs, make_parameter(name + ".weight", box, weight_init, true),
          bias_parameter(bias, name, Box::whole({out})), low_rank(adapter, name, box)};
}

Value ParallelLinear::operator()(Context& context, const LinearInput& x, Activation activation,
                                 bool apply_activation) const {
  if (cut_ == Cut::outputs) {
    return column_parallel(context, x,
                           {.activation = activation, .apply_activation = apply_activation});
  }
  check(activation == Activation::none, weight_->name,
        ": an activation cannot be applied to the parts of a sum");
  return row_parallel(context, x);
}

// dL/dx of this rank's features gets a slot of its own. It is summed from when linear has made it
// until the entry here, which comes next in backward, hands it to x.
Value ParallelLinear::column_parallel(Context& context, const LinearInput& input,
                                      LinearOptions options) const {
  const Value& x = input.value;
  std::shared_ptr<GatheredInput> gathered;
  if (context.mesh.divides_tokens()) {
    gathered = std::make_shared<GatheredInput>(context, input);
  }
  const Tensor all = gathered ? gathered->gather(x.data, context.stream) : x.data;
  const Rounded rounded(context, *weight_, all);
  const Value part = context.wrap(rounded ? rounded.numbers : all);
  Rematerialize rematerialize = rounded ? rounded.rematerialize() : input.rematerialize;
  if (context.tape != nullptr) {
    const auto gradient = std::make_shared<InputGradient>(context, x.slot, part.slot);
    context.tape->record({.op = "sum_input_gradient",
                          .input_gradient = [gradient](Tape& tape) { gradient->finish(tape); },
                          .shape = x.shape()});
    options.after_input_gradient = [gradient](Tape& tape) { gradient->start(tape); };
    if (gathered && !rounded) {
      if (!weight_->frozen) {
        options.before_input_gradient = [gathered](Tape& tape) {
          if (tape.deferred == nullptr) {
            gathered->start(tape.stream());
          }
        };
      }
      rematerialize = [gathered](Stream& stream) { return gathered->take(stream); };
    }
  }
  return adapted(context, {part, std::move(rematerialize)}, options);
}

// In backward the product beside comes first, so that the gradient of x is complete where the layer
// itself has added its part.
Value ParallelLinear::adapted(Context& context, const LinearInput& x, LinearOptions options) const {
  if (FakeQuantLayer* const grids = fake_quant_layer(context, *weight_)) {
    options.weight = grids->weight(context);
  }
  if (!adapter_) {
    return linear(context, x, *weight_, bias_.get(), options);
  }
  const Activation left = std::exchange(options.activation, Activation::none);
  check(options.apply_activation && x.activation == Activation::none, weight_->name,
        ": beside a low-rank product activations are applied where they are made");
  const Value y = linear(context, x, *weight_, bias_.get(), options);
  adapter_->add(context, x, y);
  return left == Activation::none ? y : activation(context, y, left);
}

Value ParallelLinear::row_parallel(Context& context, const LinearInput& x) const {
  const bool first = context.mesh.coordinate(Axis::tensor) == 0;
  const Rounded rounded(context, *weight_, x.value.data);
  // The gradient of rounded numbers is that of the numbers: one slot for both.
  const LinearInput input =
      rounded ? LinearInput({rounded.numbers, x.value.slot}, rounded.rematerialize()) : x;
  return sum_to_local_tokens(context, adapted(context, input, {.add_bias = first}));
}

void ParallelLinear::collect(ParameterList& parameters) const {
  parameters.push_back(weight_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
  if (adapter_) {
    adapter_->collect(parameters);
  }
}

}  // namespace bloomery
