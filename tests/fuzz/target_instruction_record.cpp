// A record of instruction data, read as every format, and as a pair: messages, or an Error.
#include "chat/preference_record.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  for (const RecordFormat format :
       {RecordFormat::automatic, RecordFormat::messages, RecordFormat::sharegpt,
        RecordFormat::alpaca, RecordFormat::dolly, RecordFormat::pairs, RecordFormat::columns}) {
    try {
      read_record(as_text(input), format);
      read_preference(as_text(input));
    } catch (const Error&) {
      continue;  // another format may take it
    }
  }
}

}  // namespace bloomery
