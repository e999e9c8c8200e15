#include "chat/jinja/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "chat/jinja/print.h"

namespace bloomery::jinja {
namespace {

// [[fill]align][sign][0][width][.precision][type], which both ways share in substance.
struct Field {
  char fill = ' ', align = '\0', sign = '\0', type = '\0';
  std::size_t width = 0;
  int precision = -1;
};

constexpr std::size_t kMaxWidth = 10'000;

std::size_t read_number(std::string_view text, std::size_t& at) {
  std::size_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + static_cast<std::size_t>(text[at] - '0');
    check(value <= kMaxWidth, "a format is wider than ", kMaxWidth);
  }
  return value;
}

Text padded(Text text, const Field& field, char default_align) {
  const std::size_t size = count_characters(text.bytes());
  if (size >= field.width) return text;
  const std::size_t missing = field.width - size;
  const char align = field.align == '\0' ? default_align : field.align;
  const std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  if (align == '=' && !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+')) {
    Text signed_text = text.part(0, 1);
    signed_text.append(std::string(missing, field.fill));
    signed_text.append(text, 1, text.size());
    return signed_text;
  }
  Text whole;
  whole.append(std::string(left, field.fill));
  whole.append(text);
  whole.append(std::string(missing - left, field.fill));
  return whole;
}

std::string whole_digits(std::int64_t value, char type) {
  std::array<char, 72> buffer;
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base).ptr;
  std::string digits(buffer.data(), end);
  if (type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return digits;
}

std::string real_digits(double value, const Field& field) {
  const char pattern[] = {'%', '.', '*', field.type, '\0'};
  const int precision = std::min(field.precision < 0 ? 6 : field.precision, 100);
  std::array<char, 512> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), pattern, precision, value);
  check(size >= 0 && static_cast<std::size_t>(size) < buffer.size(),
        "a number is too long to print");
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

Text formatted(Heap& heap, const Value& value, const Field& field) {
  heap.charge(field.width);
  const bool real_type =
      std::string_view("feEgGF").find(field.type) != std::string_view::npos && field.type != '\0';
  const bool whole_type =
      std::string_view("dixXob").find(field.type) != std::string_view::npos && field.type != '\0';
  if (real_type || whole_type) {
    check(value.is_number() && (real_type || value.is_whole() || field.type == 'd'), "format ",
          field.type, " of ", value.what());
    std::string digits = real_type ? real_digits(value.number(), field)
                         : value.is_whole()
                             ? whole_digits(value.whole(), field.type)
                             : whole_digits(static_cast<std::int64_t>(value.number()), 'd');
    if ((field.sign == '+' || field.sign == ' ') && digits[0] != '-')
      digits.insert(0, 1, field.sign);
    return padded(Text(digits), field, '>');
  }
  check(field.type == '\0' || field.type == 's' || field.type == 'r', "unknown format ",
        field.type);
  Text text = field.type == 'r' ? to_literal(heap, value) : to_text(heap, value);
  if (field.precision >= 0) {
    std::size_t end = 0, count = 0;
    for (; end < text.size(); ++end) {
      if ((text.bytes()[end] & 0xC0) != 0x80 &&
          count++ == static_cast<std::size_t>(field.precision))
        break;
    }
    text = text.part(0, end);
  }
  return padded(std::move(text), field, value.is_number() && field.type == '\0' ? '>' : '<');
}

Field read_spec(std::string_view spec) {
  Field field;
  std::size_t at = 0;
  const auto is_align = [&](std::size_t i) {
    return i < spec.size() && std::string_view("<>=^").find(spec[i]) != std::string_view::npos;
  };
  if (is_align(1)) field.fill = spec[at++];
  if (is_align(at)) field.align = spec[at++];
  if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' '))
    field.sign = spec[at++];
  if (at < spec.size() && spec[at] == '0' && field.align == '\0') {
    field.fill = '0';
    field.align = '=';
    ++at;
  }
  field.width = read_number(spec, at);
  if (at < spec.size() && spec[at] == '.')
    field.precision = static_cast<int>(read_number(spec, ++at));
  if (at < spec.size()) field.type = spec[at++];
  check(at == spec.size(), "unknown format '", spec, "'");
  return field;
}

}  // namespace

Text percent_format(Heap& heap, const Text& pattern, const std::vector<Value>& values) {
  const std::string& bytes = pattern.bytes();
  heap.charge(bytes.size());
  Text result;
  std::size_t used = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t percent = std::min(bytes.find('%', i), bytes.size());
    result.append(pattern, i, percent);
    if (percent == bytes.size()) break;
    i = percent + 1;
    Field field;
    for (; i < bytes.size() && std::string_view("-0+ ").find(bytes[i]) != std::string_view::npos;
         ++i) {
      if (bytes[i] == '-') field.align = '<';
      if (bytes[i] == '0') field.fill = '0';
      if (bytes[i] == '+' || bytes[i] == ' ') field.sign = bytes[i];
    }
    field.width = read_number(bytes, i);
    if (i < bytes.size() && bytes[i] == '.')
      field.precision = static_cast<int>(read_number(bytes, ++i));
    check(i < bytes.size(), "an unfinished % in a format");
    field.type = bytes[i++];
    if (field.type == '%') {
      result.append("%");
      continue;
    }
    if (field.align == '\0') field.align = field.fill == '0' ? '=' : '>';
    if (field.align == '<') field.fill = ' ';
    check(used < values.size(), "a format has more % than values");
    result.append(formatted(heap, values[used++], field));
  }
  check(used == values.size(), "a format has fewer % than values");
  return result;
}

Text brace_format(Heap& heap, const Text& pattern, const Arguments& arguments) {
  const std::string& bytes = pattern.bytes();
  heap.charge(bytes.size());
  Text result;
  std::size_t next = 0;
  const auto find = [&](const std::string& name) -> const Value& {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      std::size_t at = 0;
      const std::size_t place = name.empty() ? next++ : read_number(name, at);
      check(place < arguments.positional.size(), "format: no value for {", name, "}");
      return arguments.positional[place];
    }
    for (const auto& [given, value] : arguments.named) {
      if (given == name) return value;
    }
    throw Error(concat("format: no value for {", name, "}"));
  };
  for (std::size_t i = 0; i < bytes.size();) {
    const char c = bytes[i];
    if ((c == '{' || c == '}') && i + 1 < bytes.size() && bytes[i + 1] == c) {
      result.append(pattern, i, i + 1);
      i += 2;
    } else if (c == '{') {
      const std::size_t end = bytes.find('}', i);
      check(end != std::string::npos, "format: { without }");
      const std::string inside = bytes.substr(i + 1, end - i - 1);
      const std::size_t colon = std::min(inside.find(':'), inside.size());
      const Field field =
          read_spec(std::string_view(inside).substr(std::min(colon + 1, inside.size())));
      result.append(formatted(heap, find(inside.substr(0, colon)), field));
      i = end + 1;
    } else {
      check(c != '}', "format: } without {");
      result.append(pattern, i, i + 1);
      ++i;
    }
  }
  return result;
}

}  // namespace bloomery::jinja
