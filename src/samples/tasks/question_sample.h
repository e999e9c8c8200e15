// Samples of a retriever's tuning: a question, the passage to be found, and others to tell it from.
#pragma once

#include "base/random.h"
#include "samples/tasks/natural_questions.h"
#include "samples/tasks/task_dataset.h"

namespace bloomery {

// tokens and key_end of the question [length]; encoder.tokens and encoder.key_end of `contexts`
// passages [contexts, length], the one to be found first; encoder.sample_weights.
SampleFields question_fields(std::int64_t length, std::int64_t contexts);

// What is kept of a question: TaskSample::sequences are it, the passage that answers it, and the
// others. Texts longer than `length` are cut.
struct KeptNegatives {
  // Of training: all hard ones, and the others only where there are fewer hard ones than this.
  static KeptNegatives to_draw(std::int64_t wanted);
  // Of validation: the first others, then the first hard ones.
  static KeptNegatives first_of(std::int64_t other, std::int64_t hard);

  bool drawn = false;
  std::int64_t hard = 0, other = 0;
};
TaskSample question_sample(const NaturalQuestion& question, const KeptNegatives& kept,
                           std::int64_t length, Encoder& encoder);

// Which of a sample's sequences go along as negatives: `wanted` of the hard ones by chance, and
// where they are fewer also of the others. A function of key and draw.
std::vector<std::size_t> drawn_negatives(const TaskSample& sample, std::int64_t wanted,
                                         RandomKey key, std::uint64_t draw);
// All of them, in order.
std::vector<std::size_t> all_negatives(const TaskSample& sample);

// Writes a sample of question_fields. Passages that lack, and with `absent` all, are not present.
void lay_out_question(const TaskSample& sample, const std::vector<std::size_t>& negatives,
                      const TaskTokens& special, bool absent, const Sample& out);

}  // namespace bloomery
