#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace bloomery {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Range {
  std::uint32_t first, last;
};

constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115F},
                                             {0x231A, 0x231B},
                                             {0x23E9, 0x23EC},
                                             {0x2614, 0x2615},
                                             {0x26A1, 0x26A1},
                                             {0x2705, 0x2705},
                                             {0x2728, 0x2728},
                                             {0x274C, 0x274C},
                                             {0x2E80, 0x303E},
                                             {0x3041, 0xA4CF},
                                             {0xA960, 0xA97C},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F000, 0x1FAFF},
                                             {0x20000, 0x3FFFD}});
constexpr auto kCombining = std::to_array<Range>({{0x0300, 0x036F},
                                                  {0x0483, 0x0489},
                                                  {0x0591, 0x05BD},
                                                  {0x0610, 0x061A},
                                                  {0x064B, 0x065F},
                                                  {0x0E31, 0x0E31},
                                                  {0x0E34, 0x0E3A},
                                                  {0x1AB0, 0x1AFF},
                                                  {0x1DC0, 0x1DFF},
                                                  {0x200B, 0x200F},
                                                  {0x20D0, 0x20FF},
                                                  {0xFE00, 0xFE0F},
                                                  {0xFE20, 0xFE2F}});

bool is_in(std::uint32_t code, std::span<const Range> ranges) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &Range::first);
  return after != ranges.begin() && code <= (after - 1)->last;
}

struct Character {
  std::size_t bytes = 1, columns = 1;
};

// The one at the front, which is not empty; a byte that is no UTF-8 is one of a column.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length == 1 || length > text.size()) return {};
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  return {length, is_in(code, kWide) ? std::size_t{2} : is_in(code, kCombining) ? 0u : 1u};
}

}  // namespace

std::size_t terminal_columns(int descriptor) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : kUsual;
}

std::size_t terminal_rows(int descriptor) {
  constexpr std::size_t kUsual = 24;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row : kUsual;
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t used = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    used += next.columns;
    if (used > columns) break;
    at += next.bytes;
  }
  return text.substr(0, at);
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

bool is_terminal(int descriptor) { return isatty(descriptor) == 1 && variable("TERM") != "dumb"; }

bool wants_colour() { return variable("NO_COLOR").empty(); }

}  // namespace bloomery
