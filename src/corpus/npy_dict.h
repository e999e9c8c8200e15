// The header of a .npy file: a Python dictionary with three entries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct NpyDict {
  std::string description;  // "<i4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  // numbers from 0 on
};

// Any spacing, any order, quotes of both kinds; anything else is an Error. `path` is for messages.
NpyDict parse_npy_dict(std::string_view text, const std::string& path);

}  // namespace bloomery
