#include "tokenizer/unicode/properties.h"

#include <cassert>
#include <string>

#include "tokenizer/unicode/category_runs.h"
#include "tokenizer/unicode/normalize_tables.h"
#include "tokenizer/unicode/property_tables.h"
#include "tokenizer/unicode/run_text.h"

namespace bloomery {
namespace {

constexpr std::string_view kCategories =
    "lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co cn ";

// Names for one or several categories, each of two letters.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"l", "lu ll lt lm lo"},
    {"letter", "lu ll lt lm lo"},
    {"lc", "lu ll lt"},
    {"casedletter", "lu ll lt"},
    {"m", "mn mc me"},
    {"mark", "mn mc me"},
    {"n", "nd nl no"},
    {"number", "nd nl no"},
    {"p", "pc pd ps pe pi pf po"},
    {"punct", "pc pd ps pe pi pf po"},
    {"punctuation", "pc pd ps pe pi pf po"},
    {"s", "sm sc sk so"},
    {"symbol", "sm sc sk so"},
    {"z", "zs zl zp"},
    {"separator", "zs zl zp"},
    {"c", "cc cf co cn"},
    {"other", "cc cf co cn"},
    {"any",
     "lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co cn"},
    {"assigned",
     "lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co"},
    {"uppercaseletter", "lu"},
    {"lowercaseletter", "ll"},
    {"titlecaseletter", "lt"},
    {"modifierletter", "lm"},
    {"otherletter", "lo"},
    {"nonspacingmark", "mn"},
    {"spacingmark", "mc"},
    {"enclosingmark", "me"},
    {"decimalnumber", "nd"},
    {"digit", "nd"},
    {"letternumber", "nl"},
    {"othernumber", "no"},
    {"connectorpunctuation", "pc"},
    {"dashpunctuation", "pd"},
    {"openpunctuation", "ps"},
    {"closepunctuation", "pe"},
    {"initialpunctuation", "pi"},
    {"finalpunctuation", "pf"},
    {"otherpunctuation", "po"},
    {"mathsymbol", "sm"},
    {"currencysymbol", "sc"},
    {"modifiersymbol", "sk"},
    {"othersymbol", "so"},
    {"spaceseparator", "zs"},
    {"lineseparator", "zl"},
    {"paragraphseparator", "zp"},
    {"control", "cc"},
    {"cntrl", "cc"},
    {"format", "cf"},
    {"privateuse", "co"},
    {"unassigned", "cn"},
};

constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"alpha", "alphabetic"}, {"upper", "uppercase"}, {"lower", "lowercase"}, {"hani", "han"},
    {"latn", "latin"},       {"cyrl", "cyrillic"},   {"grek", "greek"},      {"arab", "arabic"},
    {"hebr", "hebrew"},      {"hira", "hiragana"},   {"kana", "katakana"},   {"hang", "hangul"},
    {"thaa", "thaana"},      {"deva", "devanagari"}, {"zyyy", "common"},     {"zinh", "inherited"},
};

// The union of the runs whose class `wanted` accepts.
template <class Wanted>
CodeSet runs_of(const char* runs, const Wanted& wanted) {
  std::vector<CodeRange> ranges;
  read_runs(runs, [&](char32_t first, char32_t last, int number) {
    if (wanted(number)) ranges.push_back({first, last});
  });
  return CodeSet(std::move(ranges));
}

// Where a name of a list, each followed by a blank, stands in it; -1: nowhere.
int place_of(std::string_view name, std::string_view list) {
  for (int place = 0; !list.empty(); ++place) {
    const std::size_t end = list.find(' ');
    if (list.substr(0, end) == name) return place;
    list.remove_prefix(end + 1);
  }
  return -1;
}

CodeSet categories_of(std::string_view names) {
  return runs_of(detail::kCategoryRuns, [&](int number) {
    return names.find(kCategories.substr(static_cast<std::size_t>(number) * 3, 2)) != names.npos;
  });
}

const CharacterSetData* set_named(std::string_view name) {
  const CharacterSetData* data = kCharacterSets;
  while (data->name != nullptr && data->name != name) ++data;
  return data->name == nullptr ? nullptr : data;
}

CodeSet made(const CharacterSetData& data) {
  const CodeSet usual = categories_of(data.categories);
  const CodeSet differs = runs_of(data.differences, [](int number) { return number == 1; });
  return (usual & ~differs) | (differs & ~usual);
}

CodeSet ranges(std::vector<CodeRange> list) { return CodeSet(std::move(list)); }

CodeSet white_space() { return categories_of("zs zl zp") | ranges({{9, 13}, {0x85, 0x85}}); }

// Unions of other properties.
std::optional<CodeSet> combined(std::string_view name) {
  const auto all = [](std::string_view part) { return *property_named(part); };
  if (name == "space" || name == "whitespace") return white_space();
  if (name == "blank") return categories_of("zs") | ranges({{9, 9}});
  if (name == "xdigit" || name == "asciihexdigit") {
    return ranges({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  }
  if (name == "ascii") return ranges({{0, 0x7F}});
  if (name == "alnum") return all("alphabetic") | categories_of("nd");
  if (name == "graph") return ~(white_space() | categories_of("cc cn"));
  if (name == "print") return ~(white_space() | categories_of("cc cn")) | categories_of("zs");
  if (name == "posixpunct") return all("punct") | all("symbol");
  return std::nullopt;
}

}  // namespace

std::optional<CodeSet> property_named(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  for (const auto& [other, usual] : kOtherNames) {
    if (plain == other) plain = usual;
  }
  if (plain.size() == 2 && place_of(plain, kCategories) >= 0) return categories_of(plain);
  for (const auto& [group, categories] : kGroups) {
    if (plain == group) return categories_of(categories);
  }
  if (const CharacterSetData* data = set_named(plain)) return made(*data);
  const int script = place_of(plain, kScriptNames);
  if (script >= 0) return runs_of(kScriptRuns, [&](int number) { return number == script; });
  return combined(plain);
}

CodeSet character_set(std::string_view name) {
  const CharacterSetData* data = set_named(name);
  assert(data != nullptr);
  return made(*data);
}

CodeSet any_case(const CodeSet& set) {
  std::vector<CodeRange> ranges = set.ranges();
  read_table(kCaseGroups, [&](const TableEntry& group) {
    std::vector<char32_t> members = group.values;
    members.push_back(group.code);
    bool meets = false;
    for (const char32_t code : members) meets = meets || set.contains(code);
    for (const char32_t code : members) {
      if (meets) ranges.push_back({code, code});
    }
  });
  return CodeSet(std::move(ranges));
}

const std::vector<LongFold>& long_folds() {
  static const std::vector<LongFold> folds = [] {
    std::vector<LongFold> list;
    read_table(kLongFolds, [&](const TableEntry& entry) {
      list.push_back({entry.code, entry.values});
    });
    return list;
  }();
  return folds;
}

}  // namespace bloomery
