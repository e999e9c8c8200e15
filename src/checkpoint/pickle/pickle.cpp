#include "checkpoint/pickle/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = PickleNode::Kind;
using Index = std::uint32_t;

// The nodes that every pickle has.
constexpr Index kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

// The instructions of protocols 2 to 5, by their bytes.
enum Code : unsigned char {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneCode = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTupleCode = ')',
  kProto = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kNewObjectEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

class Machine {
 public:
  Machine(std::span<const std::byte> input, const std::string& source, const PickleGlobals& globals)
      : input_(input.subspan(0, std::min(input.size(), kMaxPickleBytes))),
        source_(source),
        globals_(globals) {
    for (const Kind kind : {Kind::none, Kind::boolean, Kind::boolean, Kind::tuple}) {
      make(kind);
    }
    pickle_.nodes[kTrue].integer = 1;
  }

  Pickle run() {
    require(!input_.empty() && input_[0] == std::byte{kProto}, "it does not start with a pickle");
    while (true) {
      const auto code = number<unsigned char>();
      if (code == kStop) {
        break;
      }
      if (!scalar(code) && !container(code) && !memory(code)) {
        refuse(code);
      }
    }
    pickle_.root = pop();
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, source_, ": bad pickle at byte ", at_, ": ", parts...);
  }

  [[noreturn]] void refuse(unsigned char code) const {
    throw Error(concat(source_, ": pickle instruction ", static_cast<int>(code), " at byte ",
                       at_ - 1, " is not one that torch.save writes; it is not run"));
  }

  // Input.
  std::string_view take(std::uint64_t count) {
    require(count <= input_.size() - at_, "it is cut off, or longer than ", kMaxPickleBytes,
            " bytes");
    const std::string_view part(reinterpret_cast<const char*>(input_.data()) + at_,
                                static_cast<std::size_t>(count));
    at_ += part.size();
    return part;
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(input_.data()) + at_,
                                input_.size() - at_);
    const std::size_t length = rest.find('\n');
    require(length != rest.npos, "a name has no end");
    return take(length + 1).substr(0, length);
  }

  // Nodes and stack.
  void require_room(std::size_t values) const {
    require(values < kMaxPickleValues, "it has more than ", kMaxPickleValues,
            " values, too many for a state dict");
  }

  Index make(Kind kind) {
    require_room(pickle_.nodes.size());
    pickle_.nodes.push_back({.kind = kind});
    return static_cast<Index>(pickle_.nodes.size() - 1);
  }
  PickleNode& node(Index index) { return pickle_.nodes[index]; }

  void push_integer(std::int64_t value, Kind kind = Kind::integer) {
    const Index index = make(kind);
    node(index).integer = value;
    stack_.push_back(index);
  }

  void push_text(Kind kind, std::string_view text) {
    const Index index = make(kind);
    node(index).text = text;
    stack_.push_back(index);
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Index pop() {
    require(stack_.size() > floor(), "the stack is empty");
    const Index index = stack_.back();
    stack_.pop_back();
    return index;
  }

  Index top() {
    require(stack_.size() > floor(), "the stack is empty");
    return stack_.back();
  }

  std::vector<Index> pop_to_mark() {
    require(!marks_.empty(), "there is no mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_with(Kind kind, std::vector<Index> children) {
    const Index index = make(kind);
    node(index).children = std::move(children);
    stack_.push_back(index);
  }

  void push_tuple(std::size_t count) {
    std::vector<Index> items(count);
    for (std::size_t i = count; i-- > 0;) {
      items[i] = pop();
    }
    push_with(Kind::tuple, std::move(items));
  }

  // Instructions. Each function returns false for those of the others.
  bool scalar(unsigned char code) {
    switch (code) {
      case kNoneCode:
        return stack_.push_back(kNone), true;
      case kNewTrue:
        return stack_.push_back(kTrue), true;
      case kNewFalse:
        return stack_.push_back(kFalse), true;
      case kEmptyTupleCode:
        return stack_.push_back(kEmptyTuple), true;
      case kBinInt:
        return push_integer(number<std::int32_t>()), true;
      case kBinInt1:
        return push_integer(number<std::uint8_t>()), true;
      case kBinInt2:
        return push_integer(number<std::uint16_t>()), true;
      case kLong1:
        return push_long(take(number<std::uint8_t>())), true;
      case kLong4:
        return push_long(take(number<std::uint32_t>())), true;
      case kBinFloat:
        return push_integer(static_cast<std::int64_t>(__builtin_bswap64(number<std::uint64_t>())),
                            Kind::real),
               true;
      case kBinUnicode:
      case kBinString:
      case kBinBytes:
        return push_text(Kind::text, take(number<std::uint32_t>())), true;
      case kBinUnicode8:
      case kBinBytes8:
        return push_text(Kind::text, take(number<std::uint64_t>())), true;
      case kShortBinUnicode:
      case kShortBinString:
      case kShortBinBytes:
        return push_text(Kind::text, take(number<std::uint8_t>())), true;
      case kGlobal: {
        const std::string_view module = line(), member = line();
        return push_global(module, member), true;
      }
      case kStackGlobal:
        return push_stack_global(), true;
      default:
        return false;
    }
  }

  bool container(unsigned char code) {
    switch (code) {
      case kMark:
        return mark(), true;
      case kEmptyDict:
        return push_with(Kind::dict, {}), true;
      case kEmptyList:
      case kEmptySet:
        return push_with(Kind::list, {}), true;
      case kTuple:
        return push_with(Kind::tuple, pop_to_mark()), true;
      case kTuple1:
        return push_tuple(1), true;
      case kTuple2:
        return push_tuple(2), true;
      case kTuple3:
        return push_tuple(3), true;
      case kAppend:
        return extend(Kind::list, {pop()}), true;
      case kAppends:
      case kAddItems:
        return extend(Kind::list, pop_to_mark()), true;
      case kSetItem: {
        const Index value = pop(), key = pop();
        return extend(Kind::dict, {key, value}), true;
      }
      case kSetItems:
        return extend(Kind::dict, pop_to_mark()), true;
      case kReduce:
      case kNewObject:
        return call(), true;
      case kNewObjectEx:  // keyword arguments, which only opaque values have
        return pop(), call(), true;
      case kBuild:
        return build(), true;
      case kBinPersId:
        return push_with(Kind::persistent, {pop()}), true;
      default:
        return false;
    }
  }

  bool memory(unsigned char code) {
    switch (code) {
      case kBinPut:
        return put(number<std::uint8_t>()), true;
      case kLongBinPut:
        return put(number<std::uint32_t>()), true;
      case kMemoize:
        return put(static_cast<std::uint32_t>(memo_.size())), true;
      case kBinGet:
        return get(number<std::uint8_t>()), true;
      case kLongBinGet:
        return get(number<std::uint32_t>()), true;
      case kProto: {
        const int protocol = number<std::uint8_t>();
        return require(protocol >= 2 && protocol <= 5, "protocol ", protocol, " is unknown"), true;
      }
      case kFrame:  // only says how much follows
        return number<std::uint64_t>(), true;
      default:
        return false;
    }
  }

  void mark() {
    require_room(marks_.size());
    marks_.push_back(stack_.size());
  }

  void put(std::uint32_t slot) {
    require_room(memo_.size());
    memo_[slot] = top();
  }

  void get(std::uint32_t slot) {
    const auto found = memo_.find(slot);
    require(found != memo_.end(), "it uses value ", slot, ", which it has not kept");
    stack_.push_back(found->second);
  }

  // Integers beyond 64 bits, as in states of random numbers, stay their bytes.
  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(std::int64_t)) {
      return push_text(Kind::text, bytes);
    }
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    const std::size_t unused = 64 - 8 * bytes.size();
    push_integer(unused == 64 ? 0 : static_cast<std::int64_t>(value << unused) >> unused);
  }

  void push_stack_global() {
    const Index member = pop(), module = pop();
    require(node(member).kind == Kind::text && node(module).kind == Kind::text,
            "a global without a name");
    push_global(node(module).text, node(member).text);
  }

  void push_global(std::string_view module, std::string_view member) {
    const auto same = [&](std::string_view known) {
      return known.size() == module.size() + 1 + member.size() && known.starts_with(module) &&
             known[module.size()] == ' ' && known.ends_with(member);
    };
    const auto known = std::ranges::find_if(globals_.known, same);
    if (known != globals_.known.end()) {
      return push_text(Kind::global, *known);
    }
    check(globals_.others && !runs_code(module, member), source_, ": the pickle asks for ",
          printable(module), ".", printable(member),
          globals_.others ? ", which runs code; no checkpoint needs it, and nothing of it is run"
                          : ", which is not part of a state dict of tensors; nothing of it is run");
    push_text(Kind::global, pickle_.names.emplace_back(concat(module, " ", member)));
  }

  // What pickles that attack their readers call.
  static bool runs_code(std::string_view module, std::string_view member) {
    constexpr std::string_view kModules[] = {"os",        "posix",
                                             "nt",        "subprocess",
                                             "sys",       "runpy",
                                             "importlib", "imp",
                                             "shutil",    "socket",
                                             "ctypes",    "pty",
                                             "code",      "codeop",
                                             "pickle",    "_pickle",
                                             "marshal",   "webbrowser",
                                             "platform",  "commands",
                                             "asyncio",   "multiprocessing",
                                             "signal",    "threading",
                                             "_thread",   "pdb",
                                             "bdb",       "timeit",
                                             "cProfile",  "profile",
                                             "trace",     "pydoc",
                                             "urllib",    "http",
                                             "ftplib",    "requests",
                                             "pip",       "ensurepip",
                                             "venv",      "types",
                                             "operator",  "_operator",
                                             "gc",        "inspect",
                                             "linecache", "site",
                                             "tempfile"};
    constexpr std::string_view kBuiltins[] = {
        "eval",   "exec",       "compile", "open",    "input", "__import__", "globals",
        "locals", "getattr",    "setattr", "delattr", "vars",  "apply",      "execfile",
        "file",   "breakpoint", "map",     "filter",  "print", "exit"};
    const std::string_view top = module.substr(0, module.find('.'));
    const bool builtin = top == "builtins" || top == "__builtin__";
    return std::ranges::find(kModules, top) != std::end(kModules) ||
           (builtin && std::ranges::find(kBuiltins, member) != std::end(kBuiltins)) ||
           member.find('.') != member.npos;
  }

  static std::string printable(std::string_view text) {
    std::string shown(text.substr(0, 100));
    std::ranges::replace_if(
        shown, [](char c) { return c < 0x21 || c > 0x7e; }, '?');
    return shown;
  }

  // Adds to the container under the items, or to what a call made.
  void extend(Kind kind, const std::vector<Index>& items) {
    PickleNode& target = node(top());
    const bool fits = target.kind == kind || target.kind == Kind::call;
    require(fits, "items are added to a ", name(target.kind), ", which is no ", name(kind));
    require(kind == Kind::list || items.size() % 2 == 0, "a key without a value");
    target.children.insert(target.children.end(), items.begin(), items.end());
  }

  void call() {
    const Index arguments = pop(), callee = pop();
    require(node(callee).kind == Kind::global && node(arguments).kind == Kind::tuple,
            "a call of a ", name(node(callee).kind));
    push_with(Kind::call, {callee, arguments});
  }

  // Attributes of what a call made: the members of a namespace, the `_metadata` of state dicts.
  void build() {
    const Index state = pop();
    PickleNode& target = node(top());
    require(target.kind == Kind::call, "attributes of a ", name(target.kind));
    target.state = state;
  }

  std::span<const std::byte> input_;
  const std::string& source_;
  const PickleGlobals globals_;
  std::size_t at_ = 0;
  Pickle pickle_;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Index> memo_;
};

}  // namespace

const char* name(PickleNode::Kind kind) {
  constexpr const char* kNames[] = {"None", "bool", "integer", "float", "string",   "tuple",
                                    "list", "dict", "global",  "call",  "reference"};
  return kNames[static_cast<int>(kind)];
}

Pickle read_pickle(std::span<const std::byte> input, const std::string& source,
                   const PickleGlobals& globals) {
  return Machine(input, source, globals).run();
}

}  // namespace bloomery
