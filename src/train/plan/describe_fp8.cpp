#include "config/option_table.h"
#include "train/plan/plan.h"

namespace bloomery {

void describe_fp8(OptionTable& t, Fp8Flags& o) {
  using Format = Fp8Flags::Format;
  t.section("fp8");
  t.add("fp8-format", o.format,
        "Compute linear layers in fp8: e4m3 throughout, or hybrid with e5m2 gradients. Needs "
        "--dtype bf16.",
        {{"none", Format::none}, {"e4m3", Format::e4m3}, {"hybrid", Format::hybrid}})
      .shorthand("fp8-e4m3", "e4m3")
      .shorthand("fp8-hybrid", "hybrid");
  t.add("fp8-recipe", o.recipe,
        "delayed: scale by the amax history of earlier steps. tensorwise: scale by the current "
        "amax, with one more pass over the tensor.",
        {{"delayed", Fp8Recipe::delayed}, {"tensorwise", Fp8Recipe::current}});
  t.add("fp8-wgrad", o.weight_gradients, "Compute weight gradients in fp8 too.")
      .off("Compute weight gradients in higher precision.");
  t.add("fp8-margin", o.margin, "Margin of delayed scaling, as a power of two.", between(0, 60));
  t.add("fp8-interval", o.interval, "Steps between updates of the scales.", between(1, 1e6));
  t.add("fp8-amax-history-len", o.history, "Length of the amax history in steps.",
        between(1, 65536));
  t.add("fp8-amax-compute-algo", o.amax, "Entry of the amax history that sets the scale.",
        {{"most_recent", Fp8Amax::most_recent}, {"max", Fp8Amax::largest}});
}

std::optional<Fp8Options> fp8_options(const Fp8Flags& o) {
  if (o.format == Fp8Flags::Format::none) {
    return std::nullopt;
  }
  return Fp8Options{
      .gradients = o.format == Fp8Flags::Format::hybrid ? Fp8Format::e5m2 : Fp8Format::e4m3,
      .recipe = o.recipe,
      .weight_gradients = o.weight_gradients,
      .margin = o.margin,
      .interval = o.interval,
      .history = o.history,
      .amax = o.amax};
}

}  // namespace bloomery
