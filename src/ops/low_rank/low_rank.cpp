#include "ops/low_rank/low_rank.h"

#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

struct Sizes {
  std::int64_t rows, rank, width;  // of y's columns, of b's rows, of h's
};

Sizes checked_sizes(const Value& y, const Value& h, const Parameter& b, const RowParts& parts) {
  const Shape& shape = b.value.shape();
  const Sizes sizes{shape.rows(), shape.back(), shape.back() * parts.num_places};
  check(y.shape().back() == sizes.rows && h.shape().back() == sizes.width &&
            y.shape().rows() == h.shape().rows() && y.dtype() == h.dtype() &&
            b.value.dtype() == y.dtype(),
        "low_rank_add: y ", y.dtype(), y.shape(), " and h ", h.dtype(), h.shape(),
        " do not go with ", b.name, ' ', b.value.dtype(), shape, " of ", parts.num_places,
        " products");
  return sizes;
}

Tensor spread(Stream& stream, const Parameter& b, const RowParts& parts, float scale,
              const Sizes& sizes) {
  Tensor wide = Tensor::empty(stream, b.value.dtype(), {sizes.rows, sizes.width});
  launch(stream, SpreadRows{.b = b.value, .wide = wide, .parts = parts, .scale = scale});
  return wide;
}

const Tensor& arrived(const Tape& tape, const Slot& y) {
  const Tensor& grad = tape.grad(y);
  check(static_cast<bool>(grad), "low_rank_add: no gradient arrived at an output of shape ",
        y->shape);
  return grad;
}

}  // namespace

void low_rank_add(Context& context, const Value& y, const Value& h, Parameter& b,
                  const RowParts& parts, float scale) {
  const OpScope scope(context.stream, "low_rank_add");
  const Sizes sizes = checked_sizes(y, h, b, parts);
  launch(context.stream, Matmul{.a = h.data,
                                .b = spread(context.stream, b, parts, scale, sizes),
                                .d = y.data,
                                .transpose_b = true,
                                .add = true});
  if (context.tape == nullptr) {
    return;
  }
  context.tape->record(
      {.op = "low_rank_add",
       .input_gradient =
           [h = h.slot, y = y.slot, &b, parts, scale, sizes](Tape& tape) {
             const Sink sink = tape.sink(h);
             launch(tape.stream(), Matmul{.a = arrived(tape, y),
                                          .b = spread(tape.stream(), b, parts, scale, sizes),
                                          .d = sink.target,
                                          .add = sink.add});
           },
       .weight_gradient =
           [kept = h.data, y = y.slot, &b, parts, scale, sizes](Tape& tape) {
             const Tensor wide = Tensor::empty(tape.stream(), accumulation_dtype(kept.dtype()),
                                               {sizes.rows, sizes.width});
             launch(tape.stream(),
                    Matmul{.a = arrived(tape, y), .b = kept, .d = wide, .transpose_a = true});
             const Sink sink = tape.sink(b);
             launch(tape.stream(), CollectRows{.wide = wide,
                                               .b = sink.target,
                                               .parts = parts,
                                               .scale = scale,
                                               .add = sink.add});
           },
       .parameters = {&b},
       .saved = {h.data},
       .shape = y.shape()});
}

}  // namespace bloomery
