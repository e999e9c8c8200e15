#include <charconv>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "data/filter/repair.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// HTML's names of U+00A0 to U+00FF, in order.
constexpr std::string_view kLatinNames =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn "
    "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave "
    "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml "
    "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN "
    "szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave "
    "iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute "
    "ucirc uuml yacute thorn yuml";
constexpr std::string_view kGreekNames =
    "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - "
    "Sigma Tau Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta "
    "theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega";

struct NamedCharacter {
  const char* name;
  char32_t code;
};
constexpr NamedCharacter kOthers[] = {
    {"amp", '&'},       {"lt", '<'},        {"gt", '>'},        {"quot", '"'},
    {"apos", '\''},     {"OElig", 0x152},   {"oelig", 0x153},   {"Scaron", 0x160},
    {"scaron", 0x161},  {"Yuml", 0x178},    {"fnof", 0x192},    {"circ", 0x2C6},
    {"tilde", 0x2DC},   {"ensp", 0x2002},   {"emsp", 0x2003},   {"thinsp", 0x2009},
    {"zwnj", 0x200C},   {"zwj", 0x200D},    {"lrm", 0x200E},    {"rlm", 0x200F},
    {"ndash", 0x2013},  {"mdash", 0x2014},  {"lsquo", 0x2018},  {"rsquo", 0x2019},
    {"sbquo", 0x201A},  {"ldquo", 0x201C},  {"rdquo", 0x201D},  {"bdquo", 0x201E},
    {"dagger", 0x2020}, {"Dagger", 0x2021}, {"bull", 0x2022},   {"hellip", 0x2026},
    {"permil", 0x2030}, {"prime", 0x2032},  {"Prime", 0x2033},  {"lsaquo", 0x2039},
    {"rsaquo", 0x203A}, {"oline", 0x203E},  {"frasl", 0x2044},  {"euro", 0x20AC},
    {"trade", 0x2122},  {"larr", 0x2190},   {"uarr", 0x2191},   {"rarr", 0x2192},
    {"darr", 0x2193},   {"harr", 0x2194},   {"forall", 0x2200}, {"part", 0x2202},
    {"exist", 0x2203},  {"empty", 0x2205},  {"nabla", 0x2207},  {"isin", 0x2208},
    {"prod", 0x220F},   {"sum", 0x2211},    {"minus", 0x2212},  {"radic", 0x221A},
    {"infin", 0x221E},  {"cap", 0x2229},    {"cup", 0x222A},    {"int", 0x222B},
    {"asymp", 0x2248},  {"ne", 0x2260},     {"equiv", 0x2261},  {"le", 0x2264},
    {"ge", 0x2265},     {"sub", 0x2282},    {"sup", 0x2283},    {"loz", 0x25CA},
    {"hearts", 0x2665}};

std::unordered_map<std::string_view, char32_t> make_names() {
  std::unordered_map<std::string_view, char32_t> names;
  const auto add_run = [&](std::string_view list, char32_t code) {
    for (std::size_t at = 0; at < list.size(); ++code) {
      const std::size_t end = std::min(list.find(' ', at), list.size());
      names[list.substr(at, end - at)] = code;
      at = end + 1;
    }
  };
  add_run(kLatinNames, 0xA0);
  add_run(kGreekNames, 0x391);
  names.erase("-");
  for (const NamedCharacter& entry : kOthers) names[entry.name] = entry.code;
  return names;
}

// The character that "&...;" means; 0: none.
char32_t entity(std::string_view body) {
  static const std::unordered_map<std::string_view, char32_t> names = make_names();
  if (!body.starts_with('#')) {
    const auto found = names.find(body);
    return found == names.end() ? 0 : found->second;
  }
  body.remove_prefix(1);
  const bool hexadecimal = body.starts_with('x') || body.starts_with('X');
  if (hexadecimal) body.remove_prefix(1);
  std::uint32_t code = 0;
  const auto read =
      std::from_chars(body.data(), body.data() + body.size(), code, hexadecimal ? 16 : 10);
  const bool whole = read.ec == std::errc() && read.ptr == body.data() + body.size();
  const bool valid = code > 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
  return whole && valid ? code : 0;
}

}  // namespace

bool decode_entities(std::string& text) {
  constexpr std::size_t kLongest = 26;
  if (text.find('&') == text.npos) return false;
  std::string out;
  bool changed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t sign = std::min(text.find('&', at), text.size());
    out.append(text, at, sign - at);
    at = sign;
    if (at == text.size()) break;
    const std::string_view near = std::string_view(text).substr(at, kLongest + 1);
    const std::size_t end = near.find(';');
    const char32_t code = end != near.npos ? entity(near.substr(1, end - 1)) : 0;
    if (code == 0) {
      out += '&';
      ++at;
    } else {
      append_utf8(out, code);
      at += end + 1;
      changed = true;
    }
  }
  if (changed) text = std::move(out);
  return changed;
}

}  // namespace bloomery
