// Which template makes texts of the records.
#pragma once

#include <optional>
#include <string>

#include "chat/prompt.h"
#include "samples/instruct/instruct_options.h"

namespace bloomery {

struct RecordTemplate {
  std::string source, name;
  bool is_chat = false;
  // A chat template that the model's own files do not have: what is tuned by it carries it along.
  bool is_new = false;
  bool is_built_in = false;  // for want of another
};

// The one that the options name, else that of `folder`, where the model's own may be (empty: it
// has none), else the built-in one.
RecordTemplate choose_template(const InstructOptions& options, const std::string& folder);

}  // namespace bloomery
