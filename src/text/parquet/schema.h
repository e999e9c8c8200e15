// The schema of a Parquet file as a tree of JSON values, with the levels that say which of them are
// there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/parquet/metadata.h"

namespace bloomery {

struct ParquetNode {
  enum class Kind { leaf, object, list, map };

  std::string name;
  Kind kind = Kind::leaf;
  // The value is there, not null, from this definition level on; one below it is null if the value
  // is optional.
  int defined = 0;
  bool optional = false;
  // list, map: an element is there from this definition level on, and every element but the first
  // has this repetition level. leaf: `repeated` is the highest such level around it.
  int filled = 0, repeated = 0;
  // object: its members; list: the element; map: key and value.
  std::vector<ParquetNode> children;
  std::size_t first_leaf = 0, last_leaf = 0;  // of the file's columns, those below this node

  // leaf
  ParquetType type = ParquetType::boolean;
  std::size_t type_length = 0;  // of fixed_bytes
  ParquetMeaning meaning;

  // "strings", "lists of objects": what a person calls it.
  std::string description() const;
  bool is_text() const;  // its JSON values are strings
};

// An object, whose members are the columns. What is no tree is an Error.
ParquetNode parquet_tree(const std::vector<ParquetElement>& schema);

}  // namespace bloomery
