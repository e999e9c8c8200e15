// One example of preference data: two answers to a prompt.
#pragma once

#include <string>
#include <string_view>

#include "chat/record.h"

namespace bloomery {

struct PreferenceRecord {
  // The whole conversations. Their columns are those of the record, with the texts `prompt` and
  // `completion`, where it has them.
  Record chosen, rejected;
  std::string prompt = "null";  // JSON: the messages that both begin with
};

// `chosen` and `rejected`, both texts or both lists of messages, behind a `prompt` (or `question`,
// with `system`), a text or a list too; without one, behind what they have in common. Texts may be
// transcripts of "\n\nHuman:" and "\n\nAssistant:". An Error says what is missing.
PreferenceRecord read_preference(std::string_view json);

}  // namespace bloomery
