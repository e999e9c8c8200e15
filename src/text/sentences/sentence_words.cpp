#include "text/sentences/sentence_words.h"

#include <algorithm>
#include <array>

namespace bloomery {
namespace {

using namespace std::string_view_literals;

// Sorted, for binary search.
constexpr auto kAbbreviations = std::to_array<std::string_view>(
    {"adm"sv,  "ala"sv,    "apr"sv,   "ariz"sv, "ark"sv,  "assn"sv, "aug"sv,  "ave"sv,  "blvd"sv,
     "brig"sv, "bros"sv,   "calif"sv, "capt"sv, "cf"sv,   "ch"sv,   "cie"sv,  "cmdr"sv, "co"sv,
     "col"sv,  "colo"sv,   "comdr"sv, "conn"sv, "corp"sv, "cos"sv,  "cpl"sv,  "ct"sv,   "dec"sv,
     "dept"sv, "dr"sv,     "eq"sv,    "esq"sv,  "feb"sv,  "fig"sv,  "figs"sv, "fla"sv,  "fr"sv,
     "fri"sv,  "ft"sv,     "ga"sv,    "gen"sv,  "gov"sv,  "hon"sv,  "hr"sv,   "ill"sv,  "inc"sv,
     "insp"sv, "jan"sv,    "jr"sv,    "kan"sv,  "ky"sv,   "lt"sv,   "ltd"sv,  "maj"sv,  "mass"sv,
     "md"sv,   "messrs"sv, "mg"sv,    "mich"sv, "minn"sv, "mlle"sv, "mme"sv,  "mr"sv,   "mrs"sv,
     "ms"sv,   "mt"sv,     "nev"sv,   "nos"sv,  "nov"sv,  "nr"sv,   "oct"sv,  "okla"sv, "ore"sv,
     "pa"sv,   "ph.d"sv,   "pp"sv,    "prof"sv, "pvt"sv,  "rep"sv,  "reps"sv, "rev"sv,  "sen"sv,
     "sens"sv, "sep"sv,    "sept"sv,  "sgt"sv,  "sr"sv,   "sra"sv,  "srta"sv, "st"sv,   "ste"sv,
     "supt"sv, "tenn"sv,   "thurs"sv, "tues"sv, "va"sv,   "viz"sv,  "vol"sv,  "vols"sv, "vs"sv,
     "vt"sv,   "wash"sv,   "wed"sv,   "wis"sv,  "yr"sv});

constexpr auto kStarters = std::to_array<std::string_view>(
    {"a"sv,         "about"sv,       "according"sv, "after"sv, "all"sv,
     "also"sv,      "although"sv,    "among"sv,     "an"sv,    "and"sv,
     "another"sv,   "any"sv,         "are"sv,       "as"sv,    "at"sv,
     "because"sv,   "before"sv,      "both"sv,      "but"sv,   "by"sv,
     "can"sv,       "despite"sv,     "did"sv,       "do"sv,    "does"sv,
     "during"sv,    "each"sv,        "even"sv,      "every"sv, "finally"sv,
     "for"sv,       "from"sv,        "had"sv,       "has"sv,   "have"sv,
     "he"sv,        "her"sv,         "here"sv,      "his"sv,   "how"sv,
     "however"sv,   "i"sv,           "if"sv,        "in"sv,    "indeed"sv,
     "instead"sv,   "is"sv,          "it"sv,        "its"sv,   "many"sv,
     "meanwhile"sv, "moreover"sv,    "most"sv,      "my"sv,    "nevertheless"sv,
     "no"sv,        "nonetheless"sv, "nor"sv,       "not"sv,   "now"sv,
     "on"sv,        "once"sv,        "one"sv,       "only"sv,  "or"sv,
     "our"sv,       "over"sv,        "perhaps"sv,   "she"sv,   "similarly"sv,
     "since"sv,     "so"sv,          "some"sv,      "still"sv, "such"sv,
     "that"sv,      "the"sv,         "their"sv,     "then"sv,  "there"sv,
     "these"sv,     "they"sv,        "this"sv,      "those"sv, "though"sv,
     "thus"sv,      "to"sv,          "under"sv,     "until"sv, "was"sv,
     "we"sv,        "what"sv,        "when"sv,      "where"sv, "which"sv,
     "while"sv,     "who"sv,         "why"sv,       "will"sv,  "with"sv,
     "yes"sv,       "yet"sv,         "you"sv,       "your"sv});

static_assert(std::ranges::is_sorted(kAbbreviations) && std::ranges::is_sorted(kStarters));

}  // namespace

bool is_leading_abbreviation(std::string_view word) {
  return std::ranges::binary_search(kAbbreviations, word);
}

bool is_sentence_starter(std::string_view word) {
  return std::ranges::binary_search(kStarters, word);
}

}  // namespace bloomery
