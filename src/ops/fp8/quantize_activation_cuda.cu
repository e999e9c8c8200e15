#include "ops/fp8/quantize_tile.cuh"

namespace bloomery::fp8 {

// Of bf16 alone, which is what trains in 8 bits, and only as linear layers want it: inputs in E4M3,
// gradients with both copies.
void quantize_activation(Stream& stream, const Quantize& k) {
  check(k.x.dtype == DType::bf16 && k.rows &&
            (k.derivative_at ? static_cast<bool>(k.transposed) : k.format == Fp8Format::e4m3),
        "fp8: there is no such cast of an activation of ", k.x.dtype, " to ", k.format);
  dispatch_activation(k.activation, [&](auto tag) {
    constexpr Activation kActivation = decltype(tag)::value;
    using T = __nv_bfloat16;
    if constexpr (kActivation == Activation::none) {
      return;
    } else if (!k.derivative_at) {
      const auto cast =
          k.transposed
              ? launch_quantize<Fp8Format::e4m3, Source::activated, kActivation, true, true, T>
              : launch_quantize<Fp8Format::e4m3, Source::activated, kActivation, true, false, T>;
      cast(stream, k);
    } else {
      dispatch_fp8(k.format, [&](auto format) {
        launch_quantize<decltype(format)::format, Source::derivative, kActivation, true, true, T>(
            stream, k);
      });
    }
  });
}

}  // namespace bloomery::fp8
