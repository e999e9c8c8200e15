// Files that are not lines of UTF-8 text, told apart by how they begin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/input/line_format.h"

namespace bloomery {

inline constexpr std::size_t kHeadBytes = 4096;  // as much of a file as its kind needs

// Why a file of this name cannot be read as lines of text, and how to make one that can: UTF-16 and
// UTF-32, Parquet (which is read, but not as lines), Arrow, archives, PDF and bzip2 in every
// format, CSV only where `format` is automatic and the name and a header say so. Empty: it may be
// text. `head` is the decompressed start of the file, kHeadBytes or less.
std::string why_not_text(std::string_view file_name, std::string_view head, LineFormat format);

// An Error with that reason.
void check_is_text(const std::string& file_name, std::string_view head, LineFormat format);

// The same for the regular files among these, before the first of them is read as a whole. Parquet
// files pass unless the format is text.
void check_are_text(const std::vector<std::string>& files, LineFormat format);

}  // namespace bloomery
