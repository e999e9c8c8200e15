// What a student learns from besides the labels: a teacher's logits for the same tokens.
#pragma once

#include <string_view>

#include "autograd/context.h"
#include "comm/communicator.h"

namespace bloomery {

// The teacher's last hidden states and what makes logits of them: like the states the logits never
// exist as a whole.
struct TeacherHead {
  Tensor x;                           // [tokens, the teacher's hidden size]
  const Parameter* weight = nullptr;  // [columns held here, that size]: the student's columns
  const Parameter* bias = nullptr;    // [columns held here], or null
};

// weight T^2 KL(softmax(teacher / T) || softmax(student / T)), the mean over tokens under the loss
// mask, is added to the loss. Columns of padding have no part in it. (Megatron-DeepSpeed takes the
// softmax of each tensor rank's columns by itself, and ignores the mask.)
struct Distillation {
  TeacherHead teacher;
  double weight = 1, temperature = 1;
  std::string_view loss_name = "kd loss";  // a literal
};

// One pass over the chunks of a student's head.
class DistillPass {
 public:
  // `ranks` hold the other columns, of which `num_valid` here are no padding; `inverse` is that of
  // the mask's sum. All must outlive the pass.
  DistillPass(Context& context, const Distillation& distillation, Communicator& ranks,
              std::int64_t num_valid, const Tensor& inverse);

  // Tokens [begin, end), of which `logits` are the student's. With `gradient` it returns what the
  // gradient of the logits is to get besides, until the next call.
  Tensor run(std::int64_t begin, std::int64_t end, const Tensor& logits, bool gradient);
  Tensor mean_loss() const;  // of the tokens that were run

 private:
  Context& context_;
  Stream& stream_;
  const Distillation& distillation_;
  Communicator& ranks_;
  const std::int64_t num_valid_;
  const Tensor inverse_;
  Tensor losses_, buffer_;
};

}  // namespace bloomery
