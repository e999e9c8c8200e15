#include "text/parquet/parquet_rows.h"

#include <algorithm>

#include "base/error.h"
#include "text/input/json_text.h"

namespace bloomery {
namespace {

using Kind = ParquetNode::Kind;

void add_leaves(const ParquetNode& node, std::vector<const ParquetNode*>& leaves) {
  if (node.kind == Kind::leaf) leaves.push_back(&node);
  for (const ParquetNode& child : node.children) add_leaves(child, leaves);
}

}  // namespace

ParquetRows::ParquetRows(const ParquetFile& file, const std::vector<std::string>& columns,
                         std::uint64_t first, std::uint64_t end)
    : file_(file), selected_(file.select(columns)), end_(std::min(end, file.num_rows())) {
  check(first <= end_, file.name(), " has ", file.num_rows(), " rows, and its reading stopped at ",
        first, " last time; it is another file now");
  for (const ParquetNode* node : selected_) add_leaves(*node, leaves_);
  columns_.resize(file.num_leaves());
  while (row_ < first &&
         first - row_ >= static_cast<std::uint64_t>(file.groups()[group_].num_rows)) {
    row_ += static_cast<std::uint64_t>(file.groups()[group_++].num_rows);
  }
  group_end_ = row_;
  std::vector<char> nothing;
  while (row_ < first) {
    JsonLine skipped(nothing, 0, 0);
    write(skipped);
  }
}

void ParquetRows::open_group() {
  for (const ParquetNode* leaf : leaves_) columns_[leaf->first_leaf].reset();
  while (row_ == group_end_) {
    group_end_ += static_cast<std::uint64_t>(file_.groups()[group_++].num_rows);
  }
  const ParquetGroup& group = file_.groups()[group_ - 1];
  for (const ParquetNode* leaf : leaves_) {
    const std::size_t i = leaf->first_leaf;
    columns_[i] =
        std::make_unique<ParquetColumn>(file_.bytes(), file_.data_end(), group.chunks[i], *leaf);
  }
}

void ParquetRows::write(JsonLine& line) {
  const ParquetNode* at = nullptr;
  try {
    if (row_ == group_end_) open_group();
    line.push_back('{');
    for (const ParquetNode* column : selected_) {
      if (at != nullptr) line.append(", ");
      at = column;
      append_json_string(line, column->name);
      line.append(": ");
      write_node(line, *column, 0);
    }
    line.append("}\n");
    if (++row_ < group_end_) return;
    at = nullptr;
    for (const ParquetNode* leaf : leaves_) {
      check(columns_[leaf->first_leaf]->ended(), "column '", leaf->name,
            "' holds more values than rows");
    }
  } catch (const Error& error) {
    throw Error(concat(file_.name(), ", row ", row_, at == nullptr ? "" : ", column '",
                       at == nullptr ? "" : at->name, at == nullptr ? ": " : "': ", error.what()));
  }
}

ParquetColumn& ParquetRows::column_at(std::size_t leaf, int repetition) {
  ParquetColumn& column = *columns_[leaf];
  check(!column.ended(), "it holds fewer values than rows");
  check(column.repetition() == repetition, "its levels are damaged");
  return column;
}

// A null or an empty list: one entry without a value in each leaf.
void ParquetRows::write_missing(const ParquetNode& node, int repetition, int definition) {
  for (std::size_t leaf = node.first_leaf; leaf < node.last_leaf; ++leaf) {
    ParquetColumn& column = column_at(leaf, repetition);
    check(column.definition() == definition, "its levels are damaged");
    column.next();
  }
}

void ParquetRows::write_node(JsonLine& line, const ParquetNode& node, int repetition) {
  ParquetColumn& first = column_at(node.first_leaf, repetition);
  if (first.definition() < node.defined) {
    check(node.optional, "its levels are damaged");
    line.append("null");
    return write_missing(node, repetition, node.defined - 1);
  }
  switch (node.kind) {
    case Kind::leaf:
      append_json_value(line, node, first.value());
      first.next();
      return;
    case Kind::object:
      line.push_back('{');
      for (const ParquetNode& child : node.children) {
        if (&child != &node.children[0]) line.append(", ");
        append_json_string(line, child.name);
        line.append(": ");
        write_node(line, child, repetition);
      }
      return line.push_back('}');
    case Kind::list:
    case Kind::map:
      return write_list(line, node, repetition);
  }
}

void ParquetRows::write_list(JsonLine& line, const ParquetNode& node, int repetition) {
  const ParquetColumn& first = *columns_[node.first_leaf];
  line.push_back('[');
  if (first.definition() < node.filled) {
    write_missing(node, repetition, node.defined);
  } else {
    for (int level = repetition;; level = node.repeated) {
      if (node.kind == Kind::map) {
        write_map_entry(line, node, level);
      } else {
        write_node(line, node.children[0], level);
      }
      if (first.repetition() != node.repeated) break;
      line.append(", ");
    }
  }
  line.push_back(']');
}

void ParquetRows::write_map_entry(JsonLine& line, const ParquetNode& node, int repetition) {
  line.push_back('[');
  write_node(line, node.children[0], repetition);
  line.append(", ");
  write_node(line, node.children[1], repetition);
  line.push_back(']');
}

}  // namespace bloomery
