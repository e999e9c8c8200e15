// One example of instruction data, in any of the shapes that people have.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace bloomery {

// A good record of which it cannot be said what its answers are: it is left out.
class UnmaskableRecord : public Error {
 public:
  using Error::Error;
};

enum class RecordFormat {
  automatic,  // by the keys
  messages,   // OpenAI: messages of role and content
  sharegpt,   // conversations of from and value
  alpaca,     // instruction, input, output; system, history
  dolly,      // instruction, context, response
  pairs,      // prompt, and response or completion
  columns,    // anything, for a prompt template
};

// Everything is JSON text.
struct Record {
  std::string columns;            // the record itself, an object
  std::string messages = "null";  // a list of {role, content, ...}; null: the record has none
  std::string tools = "null";
  bool has_two_answers = false;  // chosen and rejected, and no other
};

// An Error where the text is no object, or lacks what the format needs.
Record read_record(std::string_view json, RecordFormat format);

}  // namespace bloomery
