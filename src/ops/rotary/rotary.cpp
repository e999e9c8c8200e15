#include "ops/rotary/rotary.h"

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

std::int64_t rotary_dim(const RotaryOptions& o) { return o.dim == 0 ? o.head_dim : o.dim; }

void check_rotary(const char* op, const Context& context, const Value& x, const RotaryOptions& o,
                  std::int64_t heads) {
  const std::int64_t dim = rotary_dim(o);
  check(o.num_groups > 0 && o.heads_per_group > 0 && dim > 0 && dim % 2 == 0 && dim <= o.head_dim,
        op, ": ", dim, " rotary channels in heads of ", o.head_dim,
        "; it must be an even number that is not larger than the head");
  const Batch& batch = context.batch;
  const std::int64_t width = o.num_groups * heads * o.head_dim;
  check(x.shape().rank() >= 2 && x.shape()[0] == batch.num_tokens() &&
            x.data.numel() == batch.num_tokens() * width,
        op, ": input of shape ", x.shape(), ", expected ", batch.num_tokens(), " tokens of ", width,
        " numbers (", o.num_groups, " groups of ", heads, " heads of ", o.head_dim, ")");
  check(batch.positions && batch.positions.dtype() == DType::int32 &&
            batch.positions.numel() == batch.num_tokens(),
        op, ": the batch must have int32 positions, one for each of its ", batch.num_tokens(),
        " tokens");
}

// The rotation is orthogonal but for its magnitude, so its backward is the rotation by the opposite
// angle.
Value turn(Context& context, const char* op, const Value& x, const RotaryOptions& o,
           std::int64_t heads, std::int64_t turned) {
  const OpScope scope(context.stream, op);
  check_rotary(op, context, x, o, heads);
  const Tensor positions = context.batch.positions;
  const Rotary forward{.data = x.data,
                       .positions = positions,
                       .num_tokens = positions.numel(),
                       .num_groups = o.num_groups,
                       .heads = heads,
                       .turned = turned,
                       .head_dim = o.head_dim,
                       .interleaved = o.interleaved,
                       .table = make_rotary_table(o.base, rotary_dim(o), o.scaling,
                                                  o.length > 0 ? o.length : context.batch.length)};
  launch(context.stream, forward);
  Value y = context.wrap(x.data);
  if (context.tape != nullptr) {
    context.tape->record({.op = op,
                          .input_gradient =
                              [x = x.slot, y = y.slot, forward, positions](Tape& tape) {
                                if (!tape.grad(y) || x == nullptr) {
                                  return;
                                }
                                Rotary back = forward;
                                back.data = tape.sink(y).target;  // a copy if it was shared
                                back.inverse = true;
                                launch(tape.stream(), back);
                                if (!tape.adopt(x, y)) {
                                  write_grad(tape.stream(), tape.grad(y), tape.sink(x));
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace

Value rotary(Context& context, const Value& qkv, const RotaryOptions& options) {
  return turn(context, "rotary", qkv, options, options.heads_per_group + 2,
              options.heads_per_group + 1);
}

Value rotary_heads(Context& context, const Value& x, const RotaryOptions& options) {
  return turn(context, "rotary_heads", x, options, options.heads_per_group,
              options.heads_per_group);
}

}  // namespace bloomery
