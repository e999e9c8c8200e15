#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

void describe_preference(OptionTable& t, PreferenceOptions& o) {
  t.section("preferences (--dpo)");
  t.add("dpo-beta", o.beta,
        "Beta of DPO: strength of the penalty for leaving the reference model. Reference "
        "log-probabilities are computed once, up front; no second model is kept in memory.",
        above(0));
  t.add("dpo-loss", o.loss,
        "Loss on preference pairs. sigmoid: DPO. robust: corrects for label noise of "
        "--dpo-label-smoothing. hinge: SLiC. ipo: IPO, on mean log-probabilities.",
        {{"sigmoid", PreferenceLoss::sigmoid},
         {"robust", PreferenceLoss::robust},
         {"hinge", PreferenceLoss::hinge},
         {"ipo", PreferenceLoss::ipo}});
  t.add("dpo-label-smoothing", o.label_smoothing,
        "Fraction of pairs assumed to be swapped, for sigmoid and robust.", from_to_below(0, 0.5));
}

}  // namespace bloomery
