#include "train/parity/layout_text.h"

#include <cctype>
#include <charconv>

#include "base/error.h"
#include "pipeline/schedule.h"

namespace bloomery {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The longest beginning of `text` of such characters, which is cut off.
std::string_view take(std::string_view& text, bool (*of)(char)) {
  std::size_t end = 0;
  while (end < text.size() && of(text[end])) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

int* degree(Layout& layout, std::string_view word) {
  return word == "tp"   ? &layout.degrees.tensor
         : word == "ul" ? &layout.degrees.context
         : word == "cp" ? &layout.degrees.ring
         : word == "pp" ? &layout.degrees.pipeline
         : word == "dp" ? &layout.degrees.data
         : word == "ep" ? &layout.degrees.expert
         : word == "v"  ? &layout.chunks
                        : nullptr;
}

bool set_word(Layout& layout, std::string_view word) {
  if (word == "sp") {
    layout.degrees.sequence_parallel = true;
    return true;
  }
  for (const ScheduleRow& row : pipeline_schedules()) {
    if (row.layout_word != nullptr && row.layout_word == word) {
      layout.schedule = row.schedule;
      return true;
    }
  }
  return false;
}

bool set_number(Layout& layout, std::string_view word, int number) {
  if (word == "z" && 0 <= number && number <= 3) {
    layout.sharded = Sharding::of_stage(number);
    return true;
  }
  int* const place = degree(layout, word);
  if (place == nullptr || number < 1) {
    return false;
  }
  *place = number;
  return true;
}

}  // namespace

Layout parse_layout(std::string_view text) {
  Layout layout;
  std::string_view rest = text == "1" ? "" : text;
  while (!rest.empty()) {
    if (rest.front() == '+' || rest.front() == '-' || rest.front() == '.') {
      rest.remove_prefix(1);
      continue;
    }
    // Words run together ("tp2sp" never, but "sppp2"): the longest that means something wins.
    std::string_view letters = take(rest, is_letter);
    const std::string_view digits = take(rest, is_digit);
    while (set_word(layout, letters.substr(0, 2)) || set_word(layout, letters.substr(0, 5))) {
      letters.remove_prefix(letters.starts_with("gpipe") ? 5 : 2);
    }
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool understood = letters.empty()
                                ? digits.empty()
                                : error == std::errc() && set_number(layout, letters, number);
    check(
        understood, "'", letters, digits, "' in the layout '", text,
        "' means nothing; there are tpN, sp, ulN, cpN, ppN, vN, gpipe, zb, dpN, epN and z0 to z3");
  }
  layout.degrees.context *= layout.degrees.ring;
  return layout;
}

std::vector<Layout> parse_layouts(std::string_view text) {
  std::vector<Layout> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(", "), text.size());
    if (end > 0) {
      all.push_back(parse_layout(text.substr(0, end)));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  check(!all.empty(), "no layout was named: give for instance tp2,pp2,dp2z1");
  return all;
}

std::string to_text(const Layout& layout) {
  const MeshDegrees& d = layout.degrees;
  std::string text;
  const auto add = [&text](bool wanted, const std::string& part) {
    text += wanted ? (text.empty() ? "" : "+") + part : "";
  };
  add(d.tensor > 1, concat("tp", d.tensor));
  add(d.sequence_parallel, "sp");
  add(d.degree(Axis::ulysses) > 1, concat("ul", d.degree(Axis::ulysses)));
  add(d.ring > 1, concat("cp", d.ring));
  add(d.pipeline > 1, concat("pp", d.pipeline));
  add(layout.chunks > 1, concat("v", layout.chunks));
  const char* const schedule = row_of(layout.schedule).layout_word;
  add(schedule != nullptr, schedule == nullptr ? "" : schedule);
  add(d.data > 1, concat("dp", d.data));
  add(d.expert > 1, concat("ep", d.expert));
  add(layout.sharded.optimizer, layout.sharded.values      ? "z3"
                                : layout.sharded.gradients ? "z2"
                                                           : "z1");
  return text.empty() ? "1" : text;
}

}  // namespace bloomery
