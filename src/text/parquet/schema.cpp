#include "text/parquet/schema.h"

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = ParquetNode::Kind;
using Meaning = ParquetMeaning::Kind;
using Repetition = ParquetElement::Repetition;

constexpr int kMostDepth = 48;  // of elements; JSON lines are read up to 1,024 brackets deep

class Builder {
 public:
  explicit Builder(const std::vector<ParquetElement>& schema) : schema_(schema) {}

  ParquetNode build() {
    check(!schema_.empty() && !schema_[0].has_type && schema_[0].num_children > 0,
          "its schema has no columns");
    ParquetNode root = value(0, 0, 0);
    check(next_ == schema_.size(), "its schema is no tree");
    return root;
  }

 private:
  // The next element as a member or column: required, optional, or a list without an annotation.
  ParquetNode member(int defined, int repeated) {
    check(next_ < schema_.size(), "its schema is no tree");
    const ParquetElement& element = schema_[next_];
    if (element.repetition == Repetition::repeated) {
      ParquetNode list = container(Kind::list, element.name, defined, repeated);
      list.children.push_back(value(defined + 1, repeated + 1, list.first_leaf));
      list.last_leaf = leaves_;
      return list;
    }
    const bool optional = element.repetition == Repetition::optional;
    ParquetNode node = value(defined + (optional ? 1 : 0), repeated, leaves_);
    node.optional = optional;
    return node;
  }

  ParquetNode container(Kind kind, const std::string& name, int defined, int repeated) const {
    ParquetNode node;
    node.kind = kind;
    node.name = name;
    node.defined = defined;
    node.filled = defined + 1;
    node.repeated = repeated + 1;
    node.first_leaf = leaves_;
    return node;
  }

  // The next element, that it is there being given.
  ParquetNode value(int defined, int repeated, std::size_t first_leaf) {
    check(++depth_ <= kMostDepth, "its schema nests more than ", kMostDepth, " deep");
    const ParquetElement& element = schema_[next_];
    ParquetNode node;
    if (element.has_type) {
      node = leaf(element);
      node.repeated = repeated;
    } else if (is_list(element)) {
      node = container(Kind::list, element.name, defined, repeated);
      ++next_;
      node.children.push_back(list_element(element, defined + 1, repeated + 1));
    } else if (is_map(element)) {
      node = container(Kind::map, element.name, defined, repeated);
      next_ += 2;
      for (int i = 0; i < 2; ++i) node.children.push_back(member(defined + 1, repeated + 1));
    } else {
      check(element.num_children > 0, "the column '", element.name, "' has no members");
      node.kind = Kind::object;
      node.name = element.name;
      ++next_;
      for (std::int64_t i = 0; i < element.num_children; ++i) {
        node.children.push_back(member(defined, repeated));
      }
    }
    node.defined = defined;
    node.first_leaf = first_leaf;
    node.last_leaf = leaves_;
    --depth_;
    return node;
  }

  ParquetNode leaf(const ParquetElement& element) {
    check(element.num_children == 0, "the column '", element.name, "' has a type and members");
    const bool sized = element.type == ParquetType::fixed_bytes;
    check(!sized || (element.type_length > 0 && element.type_length <= 1 << 20), "the column '",
          element.name, "' has values of ", element.type_length, " bytes");
    check(element.meaning.scale >= 0 && element.meaning.scale <= 1000, "the column '", element.name,
          "' has decimals of scale ", element.meaning.scale);
    ParquetNode node;
    node.name = element.name;
    node.type = element.type;
    node.type_length = static_cast<std::size_t>(element.type_length);
    node.meaning = element.meaning;
    ++next_;
    ++leaves_;
    return node;
  }

  // A group with one member, which is repeated and is next.
  bool wraps_repeated(const ParquetElement& element) const {
    return element.num_children == 1 && next_ + 1 < schema_.size() &&
           schema_[next_ + 1].repetition == Repetition::repeated;
  }
  bool is_list(const ParquetElement& element) const {
    return element.meaning.kind == Meaning::list && wraps_repeated(element);
  }
  bool is_map(const ParquetElement& element) const {
    return element.meaning.kind == Meaning::map && wraps_repeated(element) &&
           schema_[next_ + 1].num_children == 2;
  }

  // The repeated member of a list is the element itself where older writers made it, else a group
  // around the element.
  ParquetNode list_element(const ParquetElement& list, int defined, int repeated) {
    const ParquetElement& inner = schema_[next_];
    const bool around = !inner.has_type && inner.num_children == 1 && inner.name != "array" &&
                        inner.name != list.name + "_tuple" && next_ + 1 < schema_.size() &&
                        schema_[next_ + 1].repetition != Repetition::repeated;
    if (!around) return value(defined, repeated, leaves_);
    ++next_;
    return member(defined, repeated);
  }

  const std::vector<ParquetElement>& schema_;
  std::size_t next_ = 0, leaves_ = 0;
  int depth_ = 0;
};

std::string leaf_description(const ParquetNode& leaf) {
  switch (leaf.meaning.kind) {
    case Meaning::date:
      return "dates";
    case Meaning::time:
      return "times";
    case Meaning::timestamp:
      return "timestamps";
    case Meaning::decimal:
      return "decimals";
    case Meaning::uuid:
      return "UUIDs";
    case Meaning::float16:
      return "numbers";
    default:
      break;
  }
  switch (leaf.type) {
    case ParquetType::boolean:
      return "booleans";
    case ParquetType::int96:
      return "timestamps";
    case ParquetType::bytes:
      return leaf.meaning.kind == Meaning::text ? "strings" : "bytes";
    case ParquetType::fixed_bytes:
      return "bytes";
    default:
      return "numbers";
  }
}

}  // namespace

std::string ParquetNode::description() const {
  switch (kind) {
    case Kind::object:
      return "objects";
    case Kind::list:
      return "lists of " + children[0].description();
    case Kind::map:
      return "maps";
    case Kind::leaf:
      break;
  }
  return leaf_description(*this);
}

bool ParquetNode::is_text() const {
  if (kind != Kind::leaf) return false;
  const bool has_bytes = type == ParquetType::bytes || type == ParquetType::fixed_bytes;
  return has_bytes && (meaning.kind == Meaning::none || meaning.kind == Meaning::text);
}

ParquetNode parquet_tree(const std::vector<ParquetElement>& schema) {
  return Builder(schema).build();
}

}  // namespace bloomery
