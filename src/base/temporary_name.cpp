#include "base/temporary_name.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <random>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr std::size_t kTokenDigits = 16;

// Of this process: another one of the same number, before it or in another container, has another.
const std::string& token() {
  static const std::string text = [] {
    std::random_device random;
    std::string hexadecimal;
    while (hexadecimal.size() < kTokenDigits) hexadecimal += "0123456789abcdef"[random() % 16];
    return hexadecimal;
  }();
  return text;
}

// The parts of a temporary name behind the mark; no token: it is none.
struct Writer {
  pid_t process = 0;
  std::string_view token, machine;
};

std::string_view next_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('-'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

Writer writer_of(std::string_view name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == name.npos) {
    return {};
  }
  std::string_view rest = name.substr(mark + kMark.size());
  const std::string_view process = next_part(rest);
  Writer writer{.process = 0, .token = next_part(rest), .machine = ""};
  next_part(rest);  // the count
  writer.machine = rest;
  const char* const end = process.data() + process.size();
  const bool whole = std::from_chars(process.data(), end, writer.process).ptr == end;
  const bool good = whole && writer.process > 0 && writer.token.size() == kTokenDigits;
  return good && !writer.machine.empty() ? writer : Writer();
}

}  // namespace

std::string machine_name() {
  std::array<char, 65> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  std::string text = name.data();
  for (char& c : text) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
  }
  return text;
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> count = 0;
  std::filesystem::path name = path;
  return name += concat(kMark, getpid(), "-", token(), "-", count++, "-", machine_name());
}

std::string_view final_name_of(std::string_view name) {
  return writer_of(name).token.empty() ? "" : name.substr(0, name.rfind(kMark));
}

bool is_of_this_machine(std::string_view name) { return writer_of(name).machine == machine_name(); }

bool writer_has_ended(std::string_view name) {
  const Writer writer = writer_of(name);
  if (writer.token.empty() || writer.machine != machine_name()) return false;
  if (writer.process == getpid()) {
    return writer.token != token();  // the number is ours now, so its earlier owner has ended
  }
  return kill(writer.process, 0) != 0 && errno == ESRCH;
}

std::string this_process() { return concat("process ", getpid(), " on ", machine_name()); }

}  // namespace bloomery
