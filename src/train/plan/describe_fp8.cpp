#include "config/option_table.h"
#include "train/plan/plan.h"

namespace bloomery {

void describe_fp8(OptionTable& t, Fp8Flags& o) {
  using Format = Fp8Flags::Format;
  t.section("fp8");
  t.add("fp8-format", o.format,
        "Linear layers in blocks multiply numbers of 8 bits: e4m3 all of them, or hybrid with "
        "gradients in e5m2; with --bf16 alone.",
        {{"none", Format::none}, {"e4m3", Format::e4m3}, {"hybrid", Format::hybrid}})
      .shorthand("fp8-e4m3", "e4m3")
      .shorthand("fp8-hybrid", "hybrid");
  t.add("fp8-recipe", o.recipe,
        "delayed: a tensor is scaled by the largest numbers of earlier steps. tensorwise: by its "
        "own, for one more pass over it.",
        {{"delayed", Fp8Recipe::delayed}, {"tensorwise", Fp8Recipe::current}});
  t.add("fp8-wgrad", o.weight_gradients,
        "Products that make gradients of weights are of 8 bits, too.");
  t.add("fp8-margin", o.margin, "Delayed scaling leaves room for a factor of two to this power.",
        between(0, 60));
  t.add("fp8-interval", o.interval, "Steps between new scales.", between(1, 1e6));
  t.add("fp8-amax-history-len", o.history, "Steps whose largest numbers are remembered.",
        between(1, 65536));
  t.add("fp8-amax-compute-algo", o.amax, "Which of them counts.",
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
