#include "base/number_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace bloomery {
namespace {

std::string two_digits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

}  // namespace

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > 3 + sign;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string counted(std::int64_t number, const std::string& noun) {
  return grouped(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  const std::string tail = ":" + two_digits(whole % 60);
  return hours == 0 ? std::to_string(minutes) + tail
                    : std::to_string(hours) + ":" + two_digits(minutes) + tail;
}

std::string gib_text(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / 0x1p30, 1) + " GiB";
}

std::string size_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {" B", " kB", " MB", " GB", " TB", " PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fixed(bytes, unit == 0 || bytes >= 99.95 ? 0 : 1) + kUnits.at(unit);
}

}  // namespace bloomery
