#include "tokenizer/unicode/classes.h"

#include <algorithm>

#include "tokenizer/unicode/class_runs.h"
#include "tokenizer/unicode/run_text.h"

namespace bloomery::detail {
namespace {

constexpr ClassTables make_tables() {
  ClassTables tables{};
  std::uint8_t used = 0;
  std::uint8_t whole[12] = {};  // the block that is all of a class; 0: none yet, that is ASCII's
  read_runs(kClassRuns, [&](char32_t first, char32_t last, int kind) {
    for (char32_t code = first; code <= last; ++code) {
      std::uint8_t& block = tables.block[code / 128];
      if (code % 128 == 0 && code + 127 <= last) {
        if (whole[kind] == 0) {
          whole[kind] = used++;
          std::ranges::fill(tables.classes[whole[kind]], static_cast<std::uint8_t>(kind));
        }
        block = whole[kind];
        code += 127;
      } else {
        if (code % 128 == 0) block = used++;
        tables.classes[block][code % 128] = static_cast<std::uint8_t>(kind);
      }
    }
  });
  return tables;
}

}  // namespace

constinit const ClassTables kClassTables = make_tables();

}  // namespace bloomery::detail
