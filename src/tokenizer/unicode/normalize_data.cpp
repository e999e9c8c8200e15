#include "tokenizer/unicode/normalize_data.h"

#include <cstdlib>

#include "tokenizer/unicode/normalize_tables.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr char32_t kNumLeads = 19, kNumVowels = 21, kNumTrails = 28;
constexpr char32_t kNumSyllables = kNumLeads * kNumVowels * kNumTrails;

bool is_syllable(char32_t code) { return code - kSyllables < kNumSyllables; }

std::uint64_t pair_key(char32_t first, char32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | second;
}

constexpr std::uint8_t kDecomposed = 1 << static_cast<int>(NormalForm::nfd);
constexpr std::uint8_t kCompatible = 1 << static_cast<int>(NormalForm::nfkd);
constexpr std::uint8_t kComposed = 1 << static_cast<int>(NormalForm::nfc);
constexpr std::uint8_t kCompatibleComposed = 1 << static_cast<int>(NormalForm::nfkc);
constexpr std::uint8_t kAll = kDecomposed | kCompatible | kComposed | kCompatibleComposed;

}  // namespace

void read_table(const char* text, const std::function<void(const TableEntry&)>& visit) {
  TableEntry entry;
  for (; *text != '\0'; ++text) {
    char32_t distance = 1;
    entry.is_marked = false;
    entry.values.clear();
    for (; *text != ';'; text += *text == ' ') {
      if (*text == '-') {
        entry.is_marked = true;
        ++text;
      }
      char* end = nullptr;
      const auto number = static_cast<char32_t>(std::strtoul(text, &end, 16));
      text = end;
      if (*text == ':') {
        distance = number;
        ++text;
      } else {
        entry.values.push_back(number);
      }
    }
    entry.code += distance;
    visit(entry);
  }
}

const NormalizeData& NormalizeData::get() {
  static const NormalizeData data;
  return data;
}

CharacterData& NormalizeData::at(char32_t code) {
  std::uint16_t& page = pages_[code >> 8];
  if (page == 0) {
    page = static_cast<std::uint16_t>(characters_.size() >> 8);
    characters_.resize(characters_.size() + 256);
  }
  return characters_[static_cast<std::size_t>(page) << 8 | (code & 0xFF)];
}

std::uint16_t NormalizeData::store(const std::vector<char32_t>& parts) {
  const auto position = static_cast<std::uint16_t>(pool_.size());
  pool_.push_back(static_cast<char32_t>(parts.size()));
  pool_.append(parts.begin(), parts.end());
  return position;
}

NormalizeData::NormalizeData() : pages_(0x1100), characters_(256), pool_(1, U'\0') {
  std::unordered_map<char32_t, std::vector<char32_t>> canonical;
  read_table(kCanonicalDecompositions, [&](const TableEntry& entry) {
    canonical[entry.code] = entry.values;
    const bool composes = entry.values.size() == 2 && !entry.is_marked;
    if (composes) compositions_[pair_key(entry.values[0], entry.values[1])] = entry.code;
    at(entry.code).unstable = composes ? kDecomposed | kCompatible : kAll;
  });
  for (const auto& [code, parts] : canonical) {
    std::vector<char32_t> full = parts;
    for (auto first = canonical.find(full[0]); first != canonical.end();
         first = canonical.find(full[0])) {
      full.erase(full.begin());
      full.insert(full.begin(), first->second.begin(), first->second.end());
    }
    at(code).canonical = at(code).compatible = store(full);
  }
  read_table(kCompatibilityDecompositions, [&](const TableEntry& entry) {
    CharacterData& data = at(entry.code);
    data.compatible = store(entry.values);
    data.unstable |= kCompatible | kCompatibleComposed;
  });
  read_table(kCombiningClasses, [&](const TableEntry& entry) {
    CharacterData& data = at(entry.code);
    data.combining = static_cast<std::uint8_t>(entry.values[0]);
    data.unstable = kAll;
  });
  for (const auto& [pair, code] : compositions_) {
    at(static_cast<char32_t>(pair & 0xFFFFFFFF)).unstable |= kComposed | kCompatibleComposed;
  }
  for (char32_t i = 0; i < kNumVowels; ++i)
    at(kVowels + i).unstable |= kComposed | kCompatibleComposed;
  for (char32_t i = 1; i < kNumTrails; ++i)
    at(kTrails + i).unstable |= kComposed | kCompatibleComposed;
  for (char32_t i = 0; i < kNumSyllables; ++i) {
    at(kSyllables + i).unstable |= kDecomposed | kCompatible;
  }
}

void NormalizeData::decompose(char32_t code, bool compatible, std::u32string& result) const {
  if (is_syllable(code)) {
    const char32_t index = code - kSyllables;
    result.push_back(kLeads + index / (kNumVowels * kNumTrails));
    result.push_back(kVowels + index / kNumTrails % kNumVowels);
    if (index % kNumTrails != 0) result.push_back(kTrails + index % kNumTrails);
    return;
  }
  const CharacterData& data = of(code);
  const std::size_t position = compatible ? data.compatible : data.canonical;
  if (position == 0) {
    result.push_back(code);
  } else {
    result.append(pool_, position + 1, pool_[position]);
  }
}

char32_t NormalizeData::compose(char32_t first, char32_t second) const {
  if (first - kLeads < kNumLeads && second - kVowels < kNumVowels) {
    return kSyllables + ((first - kLeads) * kNumVowels + (second - kVowels)) * kNumTrails;
  }
  if (is_syllable(first) && (first - kSyllables) % kNumTrails == 0 && second > kTrails &&
      second < kTrails + kNumTrails) {
    return first + (second - kTrails);
  }
  const auto found = compositions_.find(pair_key(first, second));
  return found == compositions_.end() ? 0 : found->second;
}

}  // namespace bloomery
