// A record of instruction data to tokens, of which some are learnt.
#pragma once

#include <string>
#include <vector>

#include "chat/encode.h"
#include "chat/prompt.h"
#include "samples/instruct/instruct_options.h"
#include "samples/instruct/record_template.h"

namespace bloomery {

struct InstructExample {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> loss_mask;  // 1: the token is to be predicted
};

// One record after another, on one thread.
class ExampleMaker {
 public:
  // The tokenizer must outlive it.
  ExampleMaker(const InstructOptions& options, const Tokenizer& tokenizer,
               const RecordTemplate& how);

  // Appends the example, not cut, or the two of a pair, the chosen one first. Nothing where --only
  // leaves the record out.
  void make(const std::string& json, std::vector<InstructExample>& examples);

 private:
  InstructExample encoded(const jinja::Text& text);
  // Whether what the template marks decides on what is learnt.
  bool marks_count() const { return options_.loss_on == LossOn::answers && response_.empty(); }

  InstructOptions options_;
  Prompt prompt_;
  MarkedEncoder encoder_;
  std::vector<TokenId> response_, instruction_;
};

}  // namespace bloomery
