#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "tokenizer/regex/program.h"
#include "tokenizer/unicode/properties.h"
#include "tokenizer/utf8.h"

namespace bloomery::regex {
namespace {

constexpr std::size_t kMostInstructions = 50000;
constexpr std::size_t kMostSets = 500;
constexpr std::uint64_t kFarthestBehind = 255;

using Kind = Instruction::Kind;

class Compiler {
 public:
  explicit Compiler(Program& program) : program_(program) {}

  void add(const Node& node) {
    switch (node.kind) {
      case Node::Kind::set:
        emit({.kind = Kind::set, .set = set_of(node.set)});
        break;
      case Node::Kind::sequence:
        for (const Node& part : node.parts) add(part);
        break;
      case Node::Kind::choice:
        add_choice(node);
        break;
      case Node::Kind::repeat:
        add_repeat(node);
        break;
      case Node::Kind::assertion:
        emit({.kind = Kind::assertion, .assertion = node.assertion});
        break;
      case Node::Kind::group:
        add_group(node);
        break;
    }
  }
  std::uint32_t emit(Instruction instruction) {
    check(program_.code.size() < kMostInstructions, "a regular expression becomes more than ",
          kMostInstructions, " instructions; its repetitions are too large");
    if (instruction.kind == Kind::split || instruction.kind == Kind::run) {
      instruction.memo = program_.num_memos;
      program_.num_memos += 2;  // a run: itself, what follows it
    }
    program_.code.push_back(instruction);
    return here() - 1;
  }
  const std::vector<CodeSet>& sets() const { return sets_; }

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(program_.code.size()); }

  std::uint32_t set_of(const CodeSet& set) {
    std::string key;
    for (const CodeRange& range : set.ranges()) {
      append_utf8(key, range.first);
      append_utf8(key, range.last);
    }
    const auto [place, is_new] =
        known_sets_.try_emplace(std::move(key), static_cast<std::uint32_t>(program_.sets.size()));
    if (is_new) {
      check(program_.sets.size() < kMostSets, "a regular expression has more than ", kMostSets,
            " different sets of characters");
      program_.sets.emplace_back(set);
      sets_.push_back(set);
    }
    return place->second;
  }

  void add_choice(const Node& node) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      if (i + 1 == node.parts.size()) {
        add(node.parts[i]);
        break;
      }
      const std::uint32_t split = emit({.kind = Kind::split, .target = here() + 1});
      add(node.parts[i]);
      jumps.push_back(emit({.kind = Kind::jump}));
      program_.code[split].other = here();
    }
    for (const std::uint32_t jump : jumps) program_.code[jump].target = here();
  }

  void add_repeat(const Node& node) {
    const Node& body = node.parts[0];
    if (body.kind == Node::Kind::set) {
      emit({.kind = Kind::run,
            .greed = node.greed,
            .set = set_of(body.set),
            .least = node.least,
            .most = node.most});
      return;
    }
    check(node.most <= 1 || width_of(body).least > 0,
          "what can be empty is repeated, which is not supported");
    if (node.greed == Greed::possessive) {
      const std::uint32_t group = emit({.kind = Kind::group, .group = GroupKind::atomic});
      add_loop(node, body, Greed::greedy);
      emit({.kind = Kind::accept});
      program_.code[group].target = here();
    } else {
      add_loop(node, body, node.greed);
    }
  }

  void add_loop(const Node& node, const Node& body, Greed greed) {
    for (std::uint32_t i = 0; i < node.least; ++i) add(body);
    std::vector<std::uint32_t> splits;
    const auto add_split = [&] {
      splits.push_back(emit({.kind = Kind::split}));
      return splits.back();
    };
    if (node.most == Node::kEndless) {
      const std::uint32_t split = add_split();
      add(body);
      emit({.kind = Kind::jump, .target = split});
    } else {
      for (std::uint32_t i = node.least; i < node.most; ++i) {
        add_split();
        add(body);
      }
    }
    for (const std::uint32_t split : splits) {
      Instruction& instruction = program_.code[split];
      instruction.target = greed == Greed::lazy ? here() : split + 1;
      instruction.other = greed == Greed::lazy ? split + 1 : here();
    }
  }

  void add_group(const Node& node) {
    Instruction group{.kind = Kind::group, .group = node.group};
    if (node.group == GroupKind::behind || node.group == GroupKind::not_behind) {
      const Width width = width_of(node.parts[0]);
      check(width.most <= kFarthestBehind, "a regular expression looks more than ", kFarthestBehind,
            " characters behind, which is not supported");
      group.least = static_cast<std::uint32_t>(width.least);
      group.most = static_cast<std::uint32_t>(width.most);
    }
    const std::uint32_t at = emit(group);
    add(node.parts[0]);
    emit({.kind = Kind::accept});
    program_.code[at].target = here();
  }

  Program& program_;
  std::vector<CodeSet> sets_;
  std::unordered_map<std::string, std::uint32_t> known_sets_;
};

std::bitset<256> first_bytes(const CodeSet& set) {
  std::bitset<256> bytes;
  for (const CodeRange& range : set.ranges()) {
    const auto lead = [](char32_t code) -> unsigned {
      return code < 0x80      ? code
             : code < 0x800   ? 0xC0 | code >> 6
             : code < 0x10000 ? 0xE0 | code >> 12
                              : 0xF0 | code >> 18;
    };
    for (unsigned byte = lead(range.first); byte <= lead(range.last); ++byte) bytes.set(byte);
  }
  return bytes;
}

// What a match from each instruction on can begin with; what is behind one is known before it, but
// for loops, so that this is repeated until nothing changes.
class BeginningsOf {
 public:
  BeginningsOf(Program& program, const std::vector<std::bitset<256>>& set_bytes)
      : program_(program), set_bytes_(set_bytes) {
    program_.beginnings.resize(program_.code.size());
    while (pass()) {
    }
  }

 private:
  bool pass() {
    bool changed = false;
    for (std::size_t i = program_.code.size(); i-- > 0;) {
      const Beginnings found = of(i);
      Beginnings& known = program_.beginnings[i];
      changed = changed || found.bytes != known.bytes || found.at_end != known.at_end;
      known = found;
    }
    return changed;
  }

  Beginnings of(std::size_t i) const {
    const Instruction& it = program_.code[i];
    const auto& known = program_.beginnings;
    switch (it.kind) {
      case Kind::set:
        return {set_bytes_[it.set], false};
      case Kind::run: {
        if (it.least > 0) return {set_bytes_[it.set], false};
        return {set_bytes_[it.set] | known[i + 1].bytes, known[i + 1].at_end};
      }
      case Kind::split:
        return {known[it.target].bytes | known[it.other].bytes,
                known[it.target].at_end || known[it.other].at_end};
      case Kind::jump:
        return known[it.target];
      case Kind::assertion:
        return known[i + 1];
      case Kind::group: {
        if (it.group != GroupKind::atomic) return known[it.target];
        // The body, or what follows where it is empty: an accept begins with anything.
        return known[i + 1];
      }
      case Kind::accept:
        break;
    }
    return {std::bitset<256>().set(), true};
  }

  Program& program_;
  const std::vector<std::bitset<256>>& set_bytes_;
};

}  // namespace

CompiledSet::CompiledSet(const CodeSet& set) : others(set.ranges()) {
  for (char32_t code = 0; code < 128; ++code) {
    if (set.contains(code)) ascii[code >> 6] |= std::uint64_t{1} << (code & 63);
  }
}

Program compile(const Node& root) {
  Program program;
  Compiler compiler(program);
  compiler.add(root);
  compiler.emit({.kind = Kind::accept});
  std::vector<std::bitset<256>> set_bytes;
  for (const CodeSet& set : compiler.sets()) set_bytes.push_back(first_bytes(set));
  const BeginningsOf beginnings(program, set_bytes);
  // A run need not give back what the next instruction cannot begin with.
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    Instruction& run = program.code[i];
    if (run.kind == Kind::run && run.greed == Greed::greedy &&
        (set_bytes[run.set] & program.beginnings[i + 1].bytes).none()) {
      run.greed = Greed::possessive;
    }
  }
  program.words = CompiledSet(*property_named("word"));
  return program;
}

}  // namespace bloomery::regex
