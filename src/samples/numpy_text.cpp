#include "samples/numpy_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

namespace bloomery {
namespace {

constexpr int kDigits = 8;  // numpy's precision
constexpr std::size_t kLine = 75;

// A number as it is printed: "0" "04117647", or with an exponent "4" "999975" "-13".
struct Parts {
  std::string whole, fraction, exponent;
};

// The fewest digits that give the number back, but at most kDigits after the point.
Parts parts_of(double value, bool scientific) {
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  char text[512];
  const auto shortest = std::to_chars(text, text + sizeof(text), value, format);
  const auto split = [](std::string number) {
    Parts parts;
    if (const std::size_t e = number.find('e'); e != std::string::npos) {
      parts.exponent = number.substr(e + 1);
      number.resize(e);
    }
    const std::size_t point = std::min(number.find('.'), number.size());
    parts.whole = number.substr(0, point);
    parts.fraction = point < number.size() ? number.substr(point + 1) : "";
    return parts;
  };
  Parts parts = split({text, shortest.ptr});
  if (parts.fraction.size() > kDigits) {
    std::snprintf(text, sizeof(text), scientific ? "%.*e" : "%.*f", kDigits, value);
    parts = split(text);
  }
  while (parts.fraction.ends_with('0')) {
    parts.fraction.pop_back();
  }
  return parts;
}

bool needs_exponents(std::span<const double> values) {
  double smallest = 0, largest = 0;
  for (const double value : values) {
    if (value != 0) {
      smallest = smallest == 0 ? value : std::min(smallest, value);
      largest = std::max(largest, value);
    }
  }
  return largest != 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
}

std::vector<std::string> words_of(std::span<const double> values) {
  const bool scientific = needs_exponents(values);
  std::vector<Parts> all;
  std::size_t whole = 0, fraction = 0, exponent = 0;
  for (const double value : values) {
    all.push_back(parts_of(value, scientific));
    whole = std::max(whole, all.back().whole.size());
    fraction = std::max(fraction, all.back().fraction.size());
    exponent = std::max(exponent, all.back().exponent.size());
  }
  std::vector<std::string> words;
  for (const Parts& parts : all) {
    std::string word(whole - parts.whole.size(), ' ');
    word += parts.whole + "." + parts.fraction;
    // Fixed numbers are padded with blanks, those with exponents with zeros.
    word.append(fraction - parts.fraction.size(), scientific ? '0' : ' ');
    if (scientific) {
      word += std::string("e") + parts.exponent[0];
      word.append(exponent - parts.exponent.size(), '0');
      word += parts.exponent.substr(1);
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::string numpy_text(std::span<const double> values) {
  std::string text, line = " ";
  const std::vector<std::string> words = words_of(values);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (line.size() + words[i].size() > kLine - 1 && line.size() > 1) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      line = " ";
    }
    line += words[i];
    line += i + 1 < words.size() ? " " : "";
  }
  text += line;
  text[0] = '[';
  return text + "]";
}

double numpy_sum(std::span<const double> values) {
  constexpr std::size_t kLanes = 8, kBlock = 128;
  if (values.size() > kBlock) {
    std::size_t half = values.size() / 2;
    half -= half % kLanes;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double sum = 0;
  std::size_t i = 0;
  if (values.size() >= kLanes) {
    double lanes[kLanes] = {};
    for (; i + kLanes <= values.size(); i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += values[i + lane];
      }
    }
    sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
          ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
  for (; i < values.size(); ++i) {
    sum += values[i];
  }
  return sum;
}

}  // namespace bloomery
