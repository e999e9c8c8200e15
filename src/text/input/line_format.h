// What a line of an input is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery {

enum class LineFormat {
  automatic,
  jsonl,   // a JSON object
  text,    // a document, as it is
  parquet  // a row of a Parquet file, as a JSON object
};

// Where a line stands in its file, for messages: "line at byte 12", or "row 12", counted from 0.
std::string line_place(std::uint64_t offset, bool is_row);

// JSONL when the file is called so (.json, .jsonl, .ndjson, also before .gz, .xz or .zst) or when
// one of the first lines is a JSON object; else plain text. `head` is whole lines of the start.
LineFormat recognise_format(std::string_view file_name, std::string_view head);

// The line at text[at] without its newline (\n or \r\n); moves `at` past it.
std::string_view next_line(std::string_view text, std::size_t& at);

// Nothing but spaces, tabs and carriage returns.
bool is_blank(std::string_view line);

}  // namespace bloomery
