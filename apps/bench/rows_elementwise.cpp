// Rows of the ops that pass over activations: arithmetic, activations, dropout, norms.
#include "apps/bench/rows.h"
#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"
#include "ops/norm/norm.h"

namespace bloomery {

std::vector<BenchRow> elementwise_rows(const BenchShapes& shapes) {
  const std::int64_t tokens = shapes.tokens(), ffn = shapes.ffn();
  const Shape wide{tokens, ffn};
  const std::string text = shape_text({tokens, ffn});
  constexpr Activation kGelu = Activation::gelu_tanh;
  return {
      {"add", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in(wide, 1e-3f), y = setup.updated(setup.dtype, wide);
         return launching(setup, ScaleAdd{.x = x, .y = y, .add = true}, {x, y});
       }},
      {"cast to fp32", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in(wide), y = setup.out(DType::fp32, wide);
         return launching(setup, ScaleAdd{.x = x, .y = y}, {x, y});
       }},
      {"gelu", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in(wide), y = setup.out(wide);
         return launching(setup, ActivationForward{.x = x, .y = y, .activation = kGelu}, {x, y});
       }},
      {"gelu backward", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in(wide), dy = setup.in(wide), dx = setup.out(wide);
         return launching(
             setup, ActivationBackward{.grad_y = dy, .x = x, .grad_x = dx, .activation = kGelu},
             {x, dy, dx});
       }},
      {"swiglu", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in({tokens, 2 * ffn}), y = setup.out(wide);
         return launching(setup, GatedForward{.x = x, .y = y, .activation = Activation::silu},
                          {x, y});
       }},
      {"swiglu backward", text,
       [=](BenchSetup& setup) {
         const Tensor x = setup.in({tokens, 2 * ffn}), dy = setup.in(wide);
         const Tensor dx = setup.out({tokens, 2 * ffn});
         return launching(
             setup,
             GatedBackward{.grad_y = dy, .x = x, .grad_x = dx, .activation = Activation::silu},
             {x, dy, dx});
       }},
  };
}

namespace {

// A mask with the usual tenth dropped; its coordinates go to `kept`.
DropoutMask tenth_dropped(BenchSetup& setup, const BenchShapes& shapes, std::vector<Tensor>& kept) {
  const Tensor samples = setup.out(DType::int64, {shapes.micro_batch});
  const Tensor places = setup.integers({shapes.sequence}, shapes.sequence);
  kept.insert(kept.end(), {samples, places});
  return {.threshold = dropout_threshold(0.1f),
          .key = 1,
          .places = {static_cast<const std::int64_t*>(samples.data()),
                     static_cast<const std::int32_t*>(places.data()), shapes.sequence}};
}

// The fused residual addition and norm, forward: two tensors in, two out.
BenchRow norm_forward(const BenchShapes& shapes, NormKind kind, bool dropped) {
  const Shape shape{shapes.tokens(), shapes.hidden};
  const std::string op =
      concat("add+", kind == NormKind::layer ? "layer" : "rms", "_norm", dropped ? "+dropout" : "");
  return {op, shape_text({shape[0], shape[1]}), [=](BenchSetup& setup) {
            const Tensor stream = setup.in(shape), pending = setup.in(shape);
            const Tensor gain = setup.in({shape[1]});
            const Tensor out = setup.out(shape), y = setup.out(shape);
            const std::int64_t num_statistics = kind == NormKind::layer ? 2 : 1;
            const Tensor statistics = setup.out(DType::fp32, {shape[0], num_statistics});
            std::vector<Tensor> kept = {stream, pending, gain, out, y, statistics};
            NormForward kernel{.options = {.kind = kind},
                               .stream = stream,
                               .pending = pending,
                               .gain = gain,
                               .out = out,
                               .y = y,
                               .statistics = statistics};
            if (dropped) {
              kernel.mask = tenth_dropped(setup, shapes, kept);
            }
            return launching(setup, kernel, kept);
          }};
}

// Its backward, with the gradient of the sum coming in and one buffer for both gradients going out.
BenchRow norm_backward(const BenchShapes& shapes) {
  const Shape shape{shapes.tokens(), shapes.hidden};
  return {"layer_norm backward", shape_text({shape[0], shape[1]}),
          [=](BenchSetup& setup) -> std::function<void()> {
            const Tensor dy = setup.in(shape), x = setup.in(shape), later = setup.in(shape);
            const Tensor gain = setup.in({shape[1]}), dx = setup.out(shape);
            const Tensor statistics = setup.in(DType::fp32, {shape[0], 2});
            const std::int64_t num_partials = num_norm_partials(shape[0], shape[1]);
            const Tensor partials = setup.updated(DType::fp32, {num_partials, 2, shape[1]});
            const Tensor d_gain = setup.out(DType::fp32, {shape[1]});
            const Tensor d_bias = setup.out(DType::fp32, {shape[1]});
            return [=, &stream = setup.stream] {
              launch(stream, NormBackward{.dy = dy,
                                          .x = x,
                                          .gain = gain,
                                          .statistics = statistics,
                                          .later = later,
                                          .d_stream = dx,
                                          .partials = partials});
              launch(stream, NormParameterGradient{
                                 .partials = partials, .d_gain = d_gain, .d_bias = d_bias});
            };
          }};
}

}  // namespace

std::vector<BenchRow> norm_rows(const BenchShapes& shapes) {
  const Shape shape{shapes.tokens(), shapes.hidden};
  return {
      norm_forward(shapes, NormKind::layer, false),
      norm_forward(shapes, NormKind::rms, false),
      norm_forward(shapes, NormKind::layer, true),
      norm_backward(shapes),
      {"dropout", shape_text({shape[0], shape[1]}),
       [=](BenchSetup& setup) {
         const Tensor x = setup.in(shape), y = setup.out(shape);
         std::vector<Tensor> kept = {x, y};
         const DropoutMask mask = tenth_dropped(setup, shapes, kept);
         return launching(setup, ApplyDropout{.x = x, .y = y, .mask = mask}, kept);
       }},
  };
}

}  // namespace bloomery
