// Options of instruction data.
#pragma once

#include <optional>
#include <string>

#include "chat/record.h"

namespace bloomery {

class OptionTable;

enum class LossOn {
  answers,  // what the template marks, or what follows the response template
  all,      // every token
};

// How records become samples.
enum class Arrangement {
  alone,   // one in a sequence
  packed,  // several, with positions and key_begin
  pairs,   // a sample is two sequences, chosen and rejected, with their `reference`
};

struct InstructOptions {
  bool enabled = false;  // the run is one of `finetune`: --data-path names files of records
  RecordFormat format = RecordFormat::automatic;
  std::string chat_template, prompt_template;  // files; the latter may be `alpaca`
  std::string only;                            // COLUMN=VALUE: records that are used
  LossOn loss_on = LossOn::answers;
  std::string response_template, instruction_template;
  bool packing = false;
  bool pairs = false;  // records are two answers to a prompt
  std::optional<double> epochs;

  Arrangement arrangement() const {
    return pairs ? Arrangement::pairs : packing ? Arrangement::packed : Arrangement::alone;
  }
};

void describe(OptionTable& table, InstructOptions& options);

}  // namespace bloomery
