#include "parallel/parallel_linear.h"

#include <optional>

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

// A sum over ranks that runs beside computation, on a stream of its own if there is one.
class SumBeside {
 public:
  SumBeside(Communicator& ranks, Stream* communication)
      : ranks_(&ranks), communication_(communication) {}

  // Starts when `compute` has made the part of this rank, which nobody touches until wait().
  void start(const Tensor& part, Stream& compute) {
    if (ranks_->size() == 1) {
      return;
    }
    if (communication_ == nullptr) {
      return ranks_->all_reduce(part, Reduce::sum, compute);
    }
    Event made(compute.device());
    made.record(compute);
    communication_->wait(made);
    ranks_->all_reduce(part, Reduce::sum, *communication_);
    summed_.emplace(compute.device());
    summed_->record(*communication_);
  }
  void wait(Stream& compute) {
    if (summed_) {
      compute.wait(*summed_);
    }
  }

 private:
  Communicator* ranks_;
  Stream* communication_;
  std::optional<Event> summed_;
};

std::unique_ptr<Parameter> bias_parameter(bool wanted, const std::string& name, const Box& box) {
  return wanted ? std::make_unique<Parameter>(make_parameter(name + ".bias", box, {}, false))
                : nullptr;
}

}  // namespace

ParallelLinear::ParallelLinear(Cut cut, Parameter weight, std::unique_ptr<Parameter> bias)
    : cut_(cut), weight_(std::make_unique<Parameter>(std::move(weight))), bias_(std::move(bias)) {}

ParallelLinear ParallelLinear::column(const Mesh& mesh, const std::string& name,
                                      const Shape& out_shape, int split_dim, std::int64_t in,
                                      bool bias, const Init& weight_init) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(split_dim >= 0 && split_dim < out_shape.rank() && out_shape[split_dim] % num_ranks == 0,
        name, ": dimension ", split_dim, " of the output ", out_shape, " cannot be divided among ",
        num_ranks, " tensor-parallel ranks: choose --tensor-model-parallel-size that divides it");
  Shape weight_shape = out_shape;
  weight_shape.append(in);
  return {
      Cut::outputs,
      make_parameter(name + ".weight", Box::whole(weight_shape).split(split_dim, rank, num_ranks),
                     weight_init, true),
      bias_parameter(bias, name, Box::whole(out_shape).split(split_dim, rank, num_ranks))};
}

ParallelLinear ParallelLinear::row(const Mesh& mesh, const std::string& name, std::int64_t out,
                                   std::int64_t in, bool bias, const Init& weight_init) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(in % num_ranks == 0, name, ": ", in, " input features cannot be divided among ", num_ranks,
        " tensor-parallel ranks: choose --tensor-model-parallel-size that divides them");
  return {Cut::inputs,
          make_parameter(name + ".weight", Box::whole({out, in}).split(1, rank, num_ranks),
                         weight_init, true),
          bias_parameter(bias, name, Box::whole({out}))};
}

Value ParallelLinear::operator()(Context& context, const LinearInput& x,
                                 Activation activation) const {
  if (cut_ == Cut::outputs) {
    return column_parallel(context, x, activation);
  }
  check(activation == Activation::none, weight_->name,
        ": an activation cannot be applied to the parts of a sum");
  return row_parallel(context, x);
}

// dL/dx of this rank's features gets a slot of its own. It is summed from when linear has made it
// until the entry here, which comes next in backward, hands it to x.
Value ParallelLinear::column_parallel(Context& context, const LinearInput& input,
                                      Activation activation) const {
  if (context.tape == nullptr) {
    return linear(context, input, *weight_, bias_.get(), {.activation = activation});
  }
  const Value& x = input.value;
  const Value part = context.wrap(x.data);
  const auto sum =
      std::make_shared<SumBeside>(context.mesh.axis(Axis::tensor), context.communication);
  context.tape->record({.op = "sum_input_gradient",
                        .input_gradient =
                            [x = x.slot, part = part.slot, sum](Tape& tape) {
                              sum->wait(tape.stream());
                              if (!tape.adopt(x, part)) {
                                write_grad(tape.stream(), tape.grad(part), tape.sink(x));
                              }
                            },
                        .shape = x.shape()});
  const auto start = [part = part.slot, sum](Tape& tape) {
    sum->start(tape.grad(part), tape.stream());
  };
  return linear(context, {part, input.remake}, *weight_, bias_.get(),
                {.activation = activation, .after_input_gradient = start});
}

Value ParallelLinear::row_parallel(Context& context, const LinearInput& x) const {
  Communicator& ranks = context.mesh.axis(Axis::tensor);
  Value y = linear(context, x, *weight_, bias_.get(), {.add_bias = ranks.rank() == 0});
  ranks.all_reduce(y.data, Reduce::sum, context.stream);
  return y;  // the gradient of the sum is that of each part
}

void ParallelLinear::collect(ParameterList& parameters) const {
  parameters.push_back(weight_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
}

}  // namespace bloomery
