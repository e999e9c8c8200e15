#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "data/filter/repair.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// The characters of bytes 0x80 to 0x9F in Windows-1252; the five that have none stand for
// themselves, as browsers take them.
constexpr std::array<char32_t, 32> kWindows1252 = {
    0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
    0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};

// The byte that Windows-1252 or Latin-1 reads as this character; 0: none above ASCII.
unsigned char byte_of(char32_t code) {
  if (code >= 0x80 && code <= 0xFF) return static_cast<unsigned char>(code);
  const auto* found = std::ranges::find(kWindows1252, code);
  return found == kWindows1252.end()
             ? 0
             : static_cast<unsigned char>(0x80 + (found - kWindows1252.begin()));
}

std::size_t sequence_length(unsigned char lead) {
  return lead >= 0xC2 && lead <= 0xDF   ? 2
         : lead >= 0xE0 && lead <= 0xEF ? 3
         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                        : 0;
}

struct Letter {
  std::size_t at, length;  // in the text
  unsigned char byte;
};

// A run of characters beyond ASCII that are bytes of a single-byte encoding.
std::vector<Letter> run_at(std::string_view text, std::size_t at) {
  std::vector<Letter> run;
  while (at < text.size()) {
    const Utf8Char next = utf8_at(text, at);
    const unsigned char byte = byte_of(next.code);
    if (byte == 0) break;
    run.push_back({at, static_cast<std::size_t>(next.length), byte});
    at += static_cast<std::size_t>(next.length);
  }
  return run;
}

// The bytes of the UTF-8 sequence at run[i], as text; empty when they are none.
std::string sequence_at(const std::vector<Letter>& run, std::size_t i) {
  const std::size_t length = sequence_length(run[i].byte);
  if (length == 0 || i + length > run.size()) return {};
  std::string bytes;
  for (std::size_t k = i; k < i + length; ++k) bytes += static_cast<char>(run[k].byte);
  return is_utf8(bytes) ? bytes : std::string();
}

// Adds the UTF-8 sequences that the run consists of; `whole` becomes false when something else is
// in it.
void add_sequences(const std::vector<Letter>& run, std::set<std::string>& found, bool& whole) {
  for (std::size_t i = 0; i < run.size() && whole;) {
    const std::string bytes = sequence_at(run, i);
    whole = !bytes.empty();
    found.insert(bytes);
    i += bytes.size();
  }
}

// A pair like É™ can be meant so. Such pairs count where all characters beyond ASCII of a text, or
// of a run, are sequences, and not always the same ones; pairs that begin with Ã or Â, and longer
// sequences, are never meant.
bool is_broken_run(const std::vector<Letter>& run) {
  std::set<std::string> found;
  bool whole = true;
  add_sequences(run, found, whole);
  return whole && found.size() >= 2;
}

bool is_broken_throughout(std::string_view text) {
  std::set<std::string> found;
  bool whole = true;
  for (std::size_t at = 0; at < text.size() && whole;) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const std::vector<Letter> run = run_at(text, at);
    if (run.empty()) return false;
    add_sequences(run, found, whole);
    at = run.back().at + run.back().length;
  }
  return whole && found.size() >= 3;
}

void append_repaired(std::string_view text, const std::vector<Letter>& run, bool throughout,
                     std::string& out, bool& changed) {
  const bool all = throughout || is_broken_run(run);
  for (std::size_t i = 0; i < run.size();) {
    const std::string bytes = sequence_at(run, i);
    const bool never_meant = bytes.size() > 2 || run[i].byte == 0xC2 || run[i].byte == 0xC3;
    if (!bytes.empty() && (all || never_meant)) {
      out += bytes;
      i += bytes.size();
      changed = true;
    } else {
      out += text.substr(run[i].at, run[i].length);
      ++i;
    }
  }
}

bool repair_once(std::string& text) {
  const bool throughout = is_broken_throughout(text);
  std::string out;
  bool changed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = skip_ascii(text, at);
    out.append(text, at, end - at);
    at = end;
    if (at == text.size()) break;
    const std::vector<Letter> run = run_at(text, at);
    if (run.empty()) {
      const auto length = static_cast<std::size_t>(utf8_at(text, at).length);
      out.append(text, at, length);
      at += length;
    } else {
      append_repaired(text, run, throughout, out, changed);
      at = run.back().at + run.back().length;
    }
  }
  if (changed) text = std::move(out);
  return changed;
}

// Control characters of the range that nobody means: letters of Windows-1252.
bool repair_controls(std::string& text) {
  if (text.find('\xC2') == text.npos) return false;
  std::string out;
  bool changed = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    const bool control = next.code >= 0x80 && next.code <= 0x9F && next.code != 0x85 &&
                         kWindows1252[next.code - 0x80] != next.code;
    append_utf8(out, control ? kWindows1252[next.code - 0x80] : next.code);
    changed = changed || control;
    at += static_cast<std::size_t>(next.length);
  }
  if (changed) text = std::move(out);
  return changed;
}

}  // namespace

bool repair_mojibake(std::string& text) {
  constexpr int kMostRounds = 5;
  bool changed = false;
  for (int round = 0; round < kMostRounds && repair_once(text); ++round) changed = true;
  return repair_controls(text) || changed;
}

}  // namespace bloomery
