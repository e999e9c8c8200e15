#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

void describe_preference(OptionTable& t, PreferenceOptions& o) {
  t.section("preferences (--dpo)");
  t.add("dpo-beta", o.beta, "How strongly the model is held to the one that it starts from.",
        above(0));
  t.add("dpo-loss", o.loss,
        "sigmoid is DPO; robust is unbiased where --dpo-label-smoothing of the pairs are swapped; "
        "hinge is SLiC's; ipo, of means over tokens, does not reward certainty without end.",
        {{"sigmoid", PreferenceLoss::sigmoid},
         {"robust", PreferenceLoss::robust},
         {"hinge", PreferenceLoss::hinge},
         {"ipo", PreferenceLoss::ipo}});
  t.add("dpo-label-smoothing", o.label_smoothing,
        "Share of the pairs that are taken to be the wrong way round; of sigmoid and robust.",
        from_to_below(0, 0.5));
}

}  // namespace bloomery
