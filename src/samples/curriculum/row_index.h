// The .idx of a file of rows.
#pragma once

#include <string>
#include <string_view>

#include "samples/curriculum/row_file.h"

namespace bloomery {

struct RowIndex {
  RowType type = RowType::i64;
  std::vector<std::int64_t> begins = {0};  // as of Rows
};
// `name` is for messages. An Error when it is no such index.
RowIndex parse_row_index(std::string_view bytes, const std::string& name);

}  // namespace bloomery
