// The last block of a decoder: final norm, then the loss where the batch has labels, else logits.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "nn/norm.h"
#include "parallel/preference.h"

namespace bloomery {

// What some heads have besides.
struct HeadExtras {
  bool bias = false;             // of the logits: "head.bias" [vocabulary]
  float scale = 1;               // of what the weight multiplies
  bool ends_in_dropout = false;  // the norm's output is dropped out like a branch
};

class Head final : public Block {
 public:
  // The weight is [vocabulary, hidden], cut over tensor ranks from row `first_token` on; shared
  // with the embedding when tied.
  Head(const ModelOptions& options, const Mesh& mesh, std::shared_ptr<Parameter> weight,
       std::int64_t first_token, const HeadExtras& extras = {});

  // Reports "lm loss", and of a student what its teacher adds (Features::distillation), or of pairs
  // their loss (Features::preference), and leaves an empty state, or leaves the logits [tokens,
  // columns held here] of the batch's output rows.
  State forward(Context& context, State state) const override;
  // What a student's head needs of this one, of all tokens, while the parameters stay.
  TeacherHead as_teacher(Context& context, State state) const;
  void collect(ParameterList& parameters) const override;
  bool is_layer() const override { return false; }

 private:
  void report_preference(Context& context, const Value& x, const PreferenceOptions& options) const;
  Value normalised(Context& context, State& state) const;  // all tokens, as the weight takes them

  Norm norm_;
  std::shared_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;  // or null
  HeadOptions options_;
  float scale_, dropout_;
};

}  // namespace bloomery
