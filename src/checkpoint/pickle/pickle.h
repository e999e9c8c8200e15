// Python's pickles as data: a closed interpreter that builds values and runs nothing.
//
// A global is only a name; calling one, or making an object of it, only notes that. What the
// instructions of a pickle cannot do here: import, call, look up attributes, or take more memory
// than a fixed multiple of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// A node of a pickle. Nodes refer to others by index; values that are put into several places exist
// once. Lists and dicts may contain themselves, so nobody should follow nodes without a bound.
struct PickleNode {
  enum class Kind : std::uint8_t {
    none,
    boolean,     // integer is 0 or 1
    integer,     // integer
    real,        // bits of a double in integer
    text,        // text; byte strings too
    tuple,       // children
    list,        // children
    dict,        // children: key, value, key, value ...
    global,      // text: "module name"
    call,        // children: the global, its arguments (a tuple), then as of a dict or list
    persistent,  // children: the object that names something outside the pickle
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  std::string_view text;    // part of the input, unless a global
  std::uint32_t state = 0;  // of a call: the attributes that it was given; 0 is None
  std::vector<std::uint32_t> children;
};
const char* name(PickleNode::Kind kind);

struct Pickle {
  std::vector<PickleNode> nodes;
  std::deque<std::string> names;  // of globals
  std::uint32_t root = 0;
  std::size_t bytes = 0;  // of the input that were used

  const PickleNode& operator[](std::uint32_t index) const { return nodes[index]; }
};

// Which globals a pickle may name.
struct PickleGlobals {
  std::span<const std::string_view> known;  // "module name"
  // Others stay values without a meaning, but for those that run programs or code: a file with one
  // of them was made to do harm, whoever would open it.
  bool others = false;
};

// Reads the pickle at the start of `input`, of which at most kMaxPickleBytes are looked at. A
// global that it may not name, an instruction of very old protocols, or anything malformed is an
// Error that starts with `source`.
inline constexpr std::size_t kMaxPickleBytes = std::size_t{32} << 20;
// Values, marks and kept values that a pickle may have: a state dict of a hundred thousand tensors
// has fewer, and they take a few hundred megabytes at most.
inline constexpr std::size_t kMaxPickleValues = std::size_t{1} << 21;
Pickle read_pickle(std::span<const std::byte> input, const std::string& source,
                   const PickleGlobals& globals);

}  // namespace bloomery
