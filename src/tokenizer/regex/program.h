// A regular expression as a list of instructions, made when a tokenizer is loaded.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/regex/syntax.h"
#include "tokenizer/unicode/char_bits.h"

namespace bloomery::regex {

// The characters of a set; those of ASCII in one word's reach.
struct CompiledSet {
  explicit CompiledSet(const CodeSet& set);
  bool contains(char32_t code) const {
    return code < 128 ? (ascii[code >> 6] >> (code & 63) & 1) != 0 : others.contains(code);
  }

  std::array<std::uint64_t, 2> ascii{};
  CharBits others;
};

struct Instruction {
  enum class Kind : std::uint8_t {
    set,        // one character of the set
    run,        // `least` to `most` characters of the set
    split,      // `target`, or else `other`
    jump,       // to `target`
    assertion,  // takes nothing
    group,      // its body follows and ends with accept; `target` is behind it
    accept,
  };
  Kind kind;
  Greed greed = Greed::greedy;
  Assertion assertion = Assertion::text_begin;
  GroupKind group = GroupKind::atomic;
  std::uint32_t set = 0;
  std::uint32_t target = 0, other = 0;
  std::uint32_t least = 0, most = 0;  // of a group that looks behind: characters of its body
  std::uint32_t memo = 0;             // the first of this instruction's places in the memory
};

// How a match can begin: with which byte, or at the end of the text.
struct Beginnings {
  std::bitset<256> bytes;
  bool at_end = false;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Beginnings> beginnings;  // of each instruction
  std::vector<CompiledSet> sets;
  CompiledSet words{CodeSet()};  // \w, for borders
  std::uint32_t num_memos = 0;
};

// An Error if the expression is too large, or repeats what can be empty.
Program compile(const Node& root);

}  // namespace bloomery::regex
