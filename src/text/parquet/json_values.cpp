#include "text/parquet/json_values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "text/input/json_text.h"
#include "text/input/python_text.h"
#include "text/parquet/bits.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

using Meaning = ParquetMeaning::Kind;

constexpr std::int64_t kSecondsOfDay = 86'400;
constexpr int kNano = 1'000'000'000;

struct Split {  // value = whole * by + rest, 0 <= rest < by
  std::int64_t whole, rest;
};
Split split(std::int64_t value, std::int64_t by) {
  const std::int64_t rest = (value % by + by) % by;
  return {value / by - (value % by < 0 ? 1 : 0), rest};
}

void append_integer(JsonLine& line, const ParquetNode& leaf, std::uint64_t number) {
  char digits[24];
  const bool narrow = leaf.type == ParquetType::int32;
  std::to_chars_result end;
  if (leaf.meaning.is_unsigned) {
    end = std::to_chars(digits, digits + sizeof digits,
                        narrow ? static_cast<std::uint32_t>(number) : number);
  } else {
    end = std::to_chars(
        digits, digits + sizeof digits,
        narrow ? static_cast<std::int32_t>(number) : static_cast<std::int64_t>(number));
  }
  line.append({digits, end.ptr});
}

bool is_integer(const ParquetNode& leaf) {
  return leaf.type == ParquetType::int32 || leaf.type == ParquetType::int64;
}

std::int64_t signed_number(const ParquetNode& leaf, std::uint64_t number) {
  return leaf.type == ParquetType::int32 ? static_cast<std::int32_t>(number)
                                         : static_cast<std::int64_t>(number);
}

void append_double(JsonLine& line, double value) {
  if (!std::isfinite(value)) return line.append("null");  // JSON has no such numbers
  line.append(python_number(value));
}

double half_to_double(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double mantissa = static_cast<double>(bits & 1023);
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

// Of the Gregorian calendar, extended in both directions; years beyond four digits have more.
std::string date_text(std::int64_t days) {
  constexpr std::int64_t kDaysOfEra = 146'097, kFromYear0 = 719'468;
  const auto [era, day_of_era] = split(days + kFromYear0, kDaysOfEra);
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t from_march = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * from_march + 2) / 5 + 1;
  const std::int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  char text[48];
  std::snprintf(text, sizeof text, "%04lld-%02lld-%02lld", static_cast<long long>(year),
                static_cast<long long>(month), static_cast<long long>(day));
  return text;
}

// With the fraction in six digits, or nine where it needs them; none if it is zero.
std::string time_text(std::int64_t seconds, std::int64_t nanoseconds) {
  char text[48];
  const int used =
      std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(seconds / 3600),
                    static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  if (nanoseconds == 0) return text;
  const bool micros = nanoseconds % 1000 == 0;
  std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used),
                micros ? ".%06lld" : ".%09lld",
                static_cast<long long>(micros ? nanoseconds / 1000 : nanoseconds));
  return text;
}

std::string timestamp_text(std::int64_t value, const ParquetMeaning& meaning) {
  const auto [seconds, fraction] = split(value, meaning.units_per_second);
  const auto [days, second] = split(seconds, kSecondsOfDay);
  return date_text(days) + "T" + time_text(second, fraction * (kNano / meaning.units_per_second)) +
         (meaning.utc ? "+00:00" : "");
}

// INT96: nanoseconds of a day, and the day as astronomers count.
std::string old_timestamp_text(std::string_view bytes) {
  constexpr std::int64_t kDayOf1970 = 2'440'588;
  const auto nanoseconds = load<std::int64_t>(bytes, 0);
  const auto [days, rest] = split(nanoseconds, kNano * kSecondsOfDay);
  const std::int64_t day = load<std::uint32_t>(bytes, 8) - kDayOf1970 + days;
  return date_text(day) + "T" + time_text(rest / kNano, rest % kNano);
}

std::string uuid_text(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

using Bytes = std::vector<std::uint8_t>;  // of a number, the most significant first

// Two's complement.
void negate(Bytes& bytes) {
  int carry = 1;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const int byte = (~bytes[i] & 0xFF) + carry;
    bytes[i] = static_cast<std::uint8_t>(byte);
    carry = byte >> 8;
  }
}

std::string digits_of(Bytes bytes) {
  std::string digits;
  while (std::ranges::any_of(bytes, [](std::uint8_t byte) { return byte != 0; })) {
    int rest = 0;
    for (std::uint8_t& byte : bytes) {
      const int value = rest << 8 | byte;
      byte = static_cast<std::uint8_t>(value / 10);
      rest = value % 10;
    }
    digits += static_cast<char>('0' + rest);
  }
  std::ranges::reverse(digits);
  return digits;
}

std::string decimal_text(const ParquetNode& leaf, const ParquetValue& value) {
  constexpr std::size_t kMostBytes = 64;  // 154 digits; writers have 76 at most
  Bytes bytes(value.bytes.begin(), value.bytes.end());
  if (is_integer(leaf)) {
    const auto number = static_cast<std::uint64_t>(signed_number(leaf, value.number));
    bytes.clear();
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(number >> shift));
    }
  }
  check(bytes.size() <= kMostBytes, "a decimal of ", bytes.size(), " bytes");
  const bool negative = !bytes.empty() && bytes[0] >= 0x80;
  if (negative) negate(bytes);
  std::string digits = digits_of(std::move(bytes));
  const auto scale = static_cast<std::size_t>(leaf.meaning.scale);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (scale > 0) digits.insert(digits.size() - scale, ".");
  return negative ? "-" + digits : digits;
}

void append_bytes(JsonLine& line, const ParquetNode& leaf, std::string_view bytes) {
  check(leaf.meaning.kind == Meaning::text || is_utf8(bytes),
        "it holds bytes that are not UTF-8 text; write it as strings, or leave it out");
  append_json_string(line, bytes);
}

// What has a meaning of its own; false: what it is stored as says all.
bool append_meant(JsonLine& line, const ParquetNode& leaf, const ParquetValue& value) {
  const bool whole = is_integer(leaf);
  const std::int64_t number = signed_number(leaf, value.number);
  switch (leaf.meaning.kind) {
    case Meaning::date:
      if (leaf.type != ParquetType::int32) return false;
      append_json_string(line, date_text(number));
      return true;
    case Meaning::time: {
      if (!whole) return false;
      const auto [seconds, fraction] = split(number, leaf.meaning.units_per_second);
      append_json_string(line, time_text(split(seconds, kSecondsOfDay).rest,
                                         fraction * (kNano / leaf.meaning.units_per_second)));
      return true;
    }
    case Meaning::timestamp:
      if (!whole) return false;
      append_json_string(line, timestamp_text(number, leaf.meaning));
      return true;
    case Meaning::decimal:
      line.append(decimal_text(leaf, value));
      return true;
    case Meaning::uuid:
      append_json_string(line, uuid_text(value.bytes));
      return true;
    case Meaning::float16:
      if (value.bytes.size() != 2) return false;
      append_double(line, half_to_double(load<std::uint16_t>(value.bytes, 0)));
      return true;
    default:
      return false;
  }
}

}  // namespace

void JsonLine::append(std::string_view text) {
  const std::uint64_t before = size_;
  size_ += text.size();
  if (size_ > most_) return;
  const std::size_t at = begin_ + before;
  if (at + text.size() > buffer_.size()) {
    buffer_.resize(std::max(2 * buffer_.size(), at + text.size()));
  }
  std::memcpy(buffer_.data() + at, text.data(), text.size());
}

void append_json_value(JsonLine& line, const ParquetNode& leaf, const ParquetValue& value) {
  if (append_meant(line, leaf, value)) return;
  switch (leaf.type) {
    case ParquetType::boolean:
      return line.append(value.number != 0 ? "true" : "false");
    case ParquetType::int32:
    case ParquetType::int64:
      return append_integer(line, leaf, value.number);
    case ParquetType::float32:
      return append_double(line, std::bit_cast<float>(static_cast<std::uint32_t>(value.number)));
    case ParquetType::float64:
      return append_double(line, std::bit_cast<double>(value.number));
    case ParquetType::int96: {
      return append_json_string(line, old_timestamp_text(value.bytes));
    }
    case ParquetType::bytes:
    case ParquetType::fixed_bytes:
      return append_bytes(line, leaf, value.bytes);
  }
}

}  // namespace bloomery
